-- Gives a lease back while it is still the holder's.
-- KEYS: lease
-- ARGV: token
-- Returns: nothing
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
