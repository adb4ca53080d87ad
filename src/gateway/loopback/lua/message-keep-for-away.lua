-- Keeps a message for a logged-out instance.
-- KEYS: away, waiting
-- ARGV: digits, message
-- Returns: 1, or 0 if it is not logged out
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[2])
return 1
