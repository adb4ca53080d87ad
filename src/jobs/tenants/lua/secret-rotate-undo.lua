-- Takes back a rotation that was reported as failed.
-- KEYS: hash
-- ARGV: currentField, secret
-- Returns: nothing
local currentField, secret = unpack(ARGV)
local current, replaced = unpack(redis.call('HMGET', KEYS[1], currentField, 'replaced'))
local old, others = string.match(replaced or '', '^([^: ]+):%d+ ?(.*)$')
if current ~= secret or not old then return end
redis.call('HSET', KEYS[1], currentField, old)
if others == '' then redis.call('HDEL', KEYS[1], 'replaced')
else redis.call('HSET', KEYS[1], 'replaced', others) end
