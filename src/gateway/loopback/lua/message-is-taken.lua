-- Checks whether the network already has a message. Behind the fence.
-- KEYS: taken
-- ARGV: none
-- Returns: 1 or 0
return redis.call('EXISTS', KEYS[1])
