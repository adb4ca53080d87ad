-- Removes a key whose creation was reported as failed.
-- KEYS: apiKey, keys
-- ARGV: id, mac
-- Returns: nothing
if redis.call('HGET', KEYS[1], 'mac') == ARGV[2] then
  redis.call('DEL', KEYS[1])
  redis.call('SREM', KEYS[2], ARGV[1])
end
