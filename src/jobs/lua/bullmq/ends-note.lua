-- Moves jobs that have ended since the last time to the indexes of their states.
-- KEYS: BullMQ's set of ended jobs, cursors
-- ARGV: name of the set, nowMs, page
-- Returns: 1 if more have ended than fit the page, else 0
-- include: file-ended.lua
-- The set is scored by the worker's clock, which may be off (MOST_OFF_MS in clock.ts), so the last
-- ends are read again. What is missed all the same, unfinished-sort.lua finds.
local AGAIN_MS = 15000
local set, cursors = KEYS[1], KEYS[2]
local name, now, page = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local from = redis.call('HGET', cursors, name) or '-inf'
local entries = redis.call('ZRANGEBYSCORE', set, from, '+inf', 'WITHSCORES', 'LIMIT', 0, page)
for i = 1, #entries, 2 do
  local id = entries[i]
  local values = redis.pcall('HMGET', EXTRACTION .. id, TENANT)
  local tenant = not values.err and (values[1]
    or string.match(redis.call('HGET', EXTRACTION .. id, 'data') or '', '"tenant":"([^"]+)"'))
  if tenant then fileEnded(id, tenant) end
end
if #entries == 0 then return 0 end
local last = tonumber(entries[#entries])
if #entries < 2 * page then
  redis.call('HSET', cursors, name, string.format('%.0f', math.min(last, now) - AGAIN_MS))
  return 0
end
-- More than a page of one millisecond would not end.
redis.call('HSET', cursors, name, (tostring(last) == from and '(' or '') .. string.format('%.0f', last))
return 1
