-- Adds a job's processor time to its key's debt, which time pays off.
-- KEYS: debt
-- ARGV: ms
-- Returns: nothing
-- include: now.lua
local untilMs = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0')) + tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.0f', untilMs), 'PX', math.max(1, math.ceil(untilMs - now)))
