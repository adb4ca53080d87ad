-- Makes an upload unknown at once.
-- KEYS: record, index
-- ARGV: file, countedPrefix
-- Returns: nothing
-- include: upload-counted.lua
local record, index = unpack(KEYS)
local file, countedPrefix = unpack(ARGV)
redis.call('ZREM', countedOf(record, countedPrefix), file)
redis.call('HSET', record, 'expiresAtMs', 0)
redis.call('ZADD', index, 0, file)
