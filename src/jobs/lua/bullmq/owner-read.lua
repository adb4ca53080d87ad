-- Reads the tenant of an extraction.
-- KEYS: job
-- ARGV: none
-- Returns: the tenant, or nothing if there is no such job
-- No caller can write `"tenant":"` into the data; see first-of-others.lua.
return string.match(redis.call('HGET', KEYS[1], 'data') or '', '"tenant":"([^"]+)"')
