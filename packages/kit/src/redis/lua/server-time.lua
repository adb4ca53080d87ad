-- Reads the clock of the Redis with the keys: each node of a cluster has its own clock.
-- KEYS: (any)
-- ARGV: none
-- Returns: {seconds, microseconds}
local time = redis.call('TIME')
return {time[1], time[2]}
