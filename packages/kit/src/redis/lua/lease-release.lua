-- Ends a lease while it is still the holder's.
-- KEYS: lease
-- ARGV: holder
-- Returns: nothing
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
