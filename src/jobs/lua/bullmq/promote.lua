-- Defines promote(keys, id, hash): lets a delayed job wait for a worker now.
-- KEYS: none
-- ARGV: none
-- Returns: nothing
-- `keys` has the queue's delayed, prioritized, wait, pc and marker. Of BullMQ's promote-9.lua.
local COUNTED = 4294967296
local function promote(keys, id, hash)
  if redis.call('ZREM', keys.delayed, id) == 0 then return end
  redis.call('HSET', hash, 'delay', 0)
  local priority = tonumber(redis.call('HGET', hash, 'priority') or '0')
  if priority > 0 then
    redis.call('ZADD', keys.prioritized, priority * COUNTED + redis.call('INCR', keys.pc) % COUNTED, id)
  else
    redis.call('LPUSH', keys.wait, id)
  end
  redis.call('ZADD', keys.marker, 0, '0')
end
