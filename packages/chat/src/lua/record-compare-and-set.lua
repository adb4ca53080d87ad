-- Replaces a record in a hash while it is still the one that was read.
-- KEYS: hash
-- ARGV: field, expected, replacement
-- Returns: 1 when it was replaced, 0 when somebody else was quicker
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
