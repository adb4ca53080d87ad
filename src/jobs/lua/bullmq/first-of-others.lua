-- Makes the first waiting job of none of the given tenants the next to be taken.
-- KEYS: prioritized, wait, marker
-- ARGV: prefix of the queue's keys, prefix of API keys, tenants...
-- Returns: 1, or 0 if none waits; jobs of paused keys do not count
-- No caller can write `"tenant":"` into the data: JSON escapes quotation marks in a text.
local PAUSED = 'pausedAtMs' -- PAUSED_FIELD in api-keys.ts
-- Search depth: as many as the unfinished jobs of five keys, at 5 µs each.
local LOOKED_FOR_AMONG = 500
local prioritized, wait, marker = unpack(KEYS)
local prefix, apiKeys, served = ARGV[1], ARGV[2], {}
for i = 3, #ARGV do served[ARGV[i]] = true end
local function isOther(id)
  local tenant = string.match(redis.call('HGET', prefix .. id, 'data') or '', '"tenant":"([^"]+)"')
  return tenant and not served[tenant] and redis.call('HEXISTS', apiKeys .. tenant, PAUSED) == 0
end
-- BullMQ takes the end of its plain list before any priority; a job there keeps its own.
local function moveToFront(id)
  if redis.call('ZREM', prioritized, id) == 0 then redis.call('LREM', wait, -1, id) end
  redis.call('RPUSH', wait, id)
  redis.call('ZADD', marker, 0, '0')
  return 1
end
local inFront = redis.call('LRANGE', wait, -LOOKED_FOR_AMONG, -1)
for i = #inFront, 1, -1 do
  if isOther(inFront[i]) then return moveToFront(inFront[i]) end
end
for _, id in ipairs(redis.call('ZRANGE', prioritized, 0, LOOKED_FOR_AMONG - 1)) do
  if isOther(id) then return moveToFront(id) end
end
return 0
