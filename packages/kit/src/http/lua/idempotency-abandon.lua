-- Frees the key of a request that did nothing, if it still owns the record.
-- KEYS: record
-- ARGV: owner
-- Returns: nothing
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('DEL', KEYS[1]) end
