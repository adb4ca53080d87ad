-- Defines now: Redis' time, ms.
-- KEYS: none
-- ARGV: none
-- Returns: nothing
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
