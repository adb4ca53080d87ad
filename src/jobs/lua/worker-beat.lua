-- Records a worker process's heartbeat, and forgets those that died long ago.
-- KEYS: workers, beats, dead
-- ARGV: id, record
-- Returns: every process not known to be dead, each followed by its last beat
-- How long a death is remembered: 24 hours, longer than any job waits for its next start.
local REMEMBERED_MS = 86400000
local workers, beats, dead = unpack(KEYS)
local id, record = unpack(ARGV)
-- include: now.lua
redis.call('HSET', workers, id, record)
redis.call('ZADD', beats, now, id)
redis.call('ZREM', dead, id)
for _, old in ipairs(redis.call('ZRANGEBYSCORE', dead, '-inf', now - REMEMBERED_MS, 'LIMIT', 0, 100)) do
  redis.call('ZREM', dead, old)
  redis.call('HDEL', workers, old)
end
return redis.call('ZRANGE', beats, 0, -1, 'WITHSCORES')
