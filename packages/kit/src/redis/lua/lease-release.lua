-- Releases a lease if the holder still has it.
-- KEYS: lease
-- ARGV: holder
-- Returns: nothing
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
