-- Marks a worker process as dead, unless it has beaten since.
-- KEYS: workers, beats, dead
-- ARGV: id, lastBeat
-- Returns: 1, or 0 if it has beaten since or was marked: of several observers one gets 1
local _, beats, dead = unpack(KEYS)
local id, lastBeat = unpack(ARGV)
-- include: now.lua
if redis.call('ZSCORE', beats, id) ~= lastBeat then return 0 end
redis.call('ZREM', beats, id)
redis.call('ZADD', dead, now, id)
return 1
