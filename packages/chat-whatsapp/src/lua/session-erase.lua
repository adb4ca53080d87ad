-- Erases a session. Behind the fence.
-- KEYS: session
-- ARGV: none
-- Returns: how many were erased
return redis.call('UNLINK', KEYS[1])
