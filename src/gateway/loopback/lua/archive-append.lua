-- Appends a message to its archives, and trims them.
-- KEYS: archive...
-- ARGV: message, longest, keepSeconds
-- Returns: 1
for index, key in ipairs(KEYS) do
  redis.call('RPUSH', key, ARGV[1])
  redis.call('LTRIM', key, -ARGV[2], -1)
  redis.call('EXPIRE', key, ARGV[3])
end
return 1
