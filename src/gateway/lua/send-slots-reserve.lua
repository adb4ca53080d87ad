-- Takes a slot for each message in an instance's sliding window: all or none.
-- KEYS: slots
-- ARGV: limit, count, nowMs, windowMs, longestWaitMs, messageId...
-- Returns: {1 or 0, the slot of the last message}
-- A sorted set of slots by time. A new slot comes a window after the slot `limit` places back, and
-- not before the last one.
local slots = KEYS[1]
local limit, count, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local window, longest = tonumber(ARGV[4]), tonumber(ARGV[5])
redis.call('ZREMRANGEBYSCORE', slots, '-inf', now - window)
local known = redis.call('ZRANGE', slots, 0, -1, 'WITHSCORES')
local times = {}
for index = 2, #known, 2 do times[#times + 1] = tonumber(known[index]) end
for index = 1, count do
  local at = now
  local before = times[#times - limit + 1]
  if before then at = math.max(at, before + window) end
  if times[#times] then at = math.max(at, times[#times]) end
  times[#times + 1] = at
end
local last = times[#times]
if last - now > longest then return {0, last} end
for index = 1, count do
  redis.call('ZADD', slots, times[#times - count + index], ARGV[5 + index])
end
redis.call('PEXPIRE', slots, last - now + window)
return {1, last}
