-- Reads the clock of the Redis that has the keys: of a cluster, another node has another clock.
-- KEYS: (any)
-- ARGV: none
-- Returns: {seconds, microseconds}
local time = redis.call('TIME')
return {time[1], time[2]}
