-- Reads the tenant of an extraction.
-- KEYS: job
-- ARGV: none
-- Returns: the tenant, or nothing if there is no such job
-- include: names.lua
local own = redis.pcall('HMGET', KEYS[1], TENANT, 'data')
if own.err then return false end
if own[1] then return own[1] end
-- Accepted by an older version.
-- No caller can write `"tenant":"` into the data; see first-of-others.lua.
return string.match(own[2] or '', '"tenant":"([^"]+)"')
