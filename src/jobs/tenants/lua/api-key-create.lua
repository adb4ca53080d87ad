-- Creates an API key with all fields, never over an existing key.
-- KEYS: apiKey, apiKeys
-- ARGV: id, field value...
-- Returns: 1, or 0 if it exists
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('SADD', KEYS[2], ARGV[1])
return 1
