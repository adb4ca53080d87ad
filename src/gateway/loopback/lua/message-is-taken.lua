-- Says whether the network has taken a message before. Behind the fence.
-- KEYS: taken
-- ARGV: none
-- Returns: 1 or 0
return redis.call('EXISTS', KEYS[1])
