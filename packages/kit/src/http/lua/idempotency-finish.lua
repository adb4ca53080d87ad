-- Stores the answer of a request, if it still owns the record.
-- KEYS: record
-- ARGV: owner, answer
-- Returns: nothing
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('HSET', KEYS[1], 'answer', ARGV[2]) end
