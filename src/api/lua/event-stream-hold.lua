-- Opens an event stream of a key within its limit, or renews an open one.
-- KEYS: streams
-- ARGV: stream, limit
-- Returns: 1, or 0 when the key has reached its limit
-- A stream that is not renewed for so long died with its process.
local HELD_SECONDS = 40
local streams = KEYS[1]
local stream, limit = ARGV[1], tonumber(ARGV[2])
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', streams, '-inf', now)
if redis.call('ZCARD', streams) >= limit and not redis.call('ZSCORE', streams, stream) then return 0 end
redis.call('ZADD', streams, now + HELD_SECONDS, stream)
redis.call('EXPIRE', streams, HELD_SECONDS)
return 1
