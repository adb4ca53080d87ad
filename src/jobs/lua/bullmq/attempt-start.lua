-- Checks whether a job may start when a worker takes it, and the attempts that left it.
-- KEYS: job, lock, beats, dead, apiKey
-- ARGV: token
-- Returns: {state, starts lost by a death, starts whose silent process may be dead}
-- A process heard from after it left the job did not die of it; an unknown one ended in order.
-- include: names.lua
local PAUSED = 'pausedAtMs' -- PAUSED_FIELD in api-keys.ts
local hash, lock, beats, dead, key = unpack(KEYS)
local token = ARGV[1]
if redis.call('GET', lock) ~= token then return {'lost', 0, 0} end
-- It has waited for its confirmation (UNCONFIRMED_MS in open-queue.ts) in vain.
if redis.call('HEXISTS', hash, CONFIRMED) == 0 then
  redis.call('HSET', hash, DROPPED, '1')
  return {'unconfirmed', 0, 0}
end
local isCancelled = redis.call('HEXISTS', hash, CANCELLED) == 1
if not isCancelled and redis.call('HEXISTS', key, PAUSED) == 1 then return {'paused', 0, 0} end
-- include: ../now.lua
local leftBy, working = unpack(redis.call('HMGET', hash, LEFT_BY, WORKING))
local lost, unsure, left = 0, 0, {}
local function see(id, since)
  local heard = redis.call('ZSCORE', beats, id)
  if redis.call('ZSCORE', dead, id) then lost = lost + 1
  elseif heard and tonumber(heard) <= since then unsure = unsure + 1
  else return end
  left[#left + 1] = string.format('%s@%.0f', id, since)
end
for id, since in string.gmatch(leftBy or '', '([^,@]+)@(%d+)') do
  if id ~= working then see(id, tonumber(since)) end
end
if working then see(working, now) end
if #left > 0 then redis.call('HSET', hash, LEFT_BY, table.concat(left, ','))
else redis.call('HDEL', hash, LEFT_BY) end
redis.call('HDEL', hash, WORKING)
return {isCancelled and 'cancelled' or 'held', lost, unsure}
