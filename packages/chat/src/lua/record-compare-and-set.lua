-- Replaces a record in a hash if it has not changed since it was read.
-- KEYS: hash
-- ARGV: field, expected, replacement
-- Returns: 1 when it was replaced, 0 when it had changed
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
