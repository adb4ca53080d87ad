-- Advances the queue's virtual time to a job, and records the attempt that got an encoder.
-- KEYS: job, virtualTime
-- ARGV: attemptToken
-- Returns: nothing
-- include: names.lua
local hash, time = unpack(KEYS)
local attempt = ARGV[1]
if attempt ~= '' and redis.call('EXISTS', hash) == 1 then
  local attempts = redis.call('HGET', hash, ATTEMPTS)
  redis.call('HSET', hash, ATTEMPTS, attempts and attempts .. ',' .. attempt or attempt)
end
local priority = tonumber(redis.call('HGET', hash, 'priority') or '0')
if priority > tonumber(redis.call('GET', time) or '0') then redis.call('SET', time, priority) end
