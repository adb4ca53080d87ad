-- Writes fields of a session; one with an empty value is removed. Behind the fence.
-- KEYS: session
-- ARGV: field value...
-- Returns: 1
-- All or nothing: a ratchet without its counterpart cannot decrypt.
for index = 1, own, 2 do
  if ARGV[index + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[index])
  else redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 1]) end
end
return 1
