-- Makes an incomplete upload a source.
-- KEYS: record, index
-- ARGV: file, sizeBytes, expiresAtMs, countedPrefix
-- Returns: 1, or 0 if it was withdrawn
-- include: upload-counted.lua
local record, index = unpack(KEYS)
local file, sizeBytes, expiresAtMs, countedPrefix = unpack(ARGV)
if redis.call('HGET', record, 'state') ~= 'incomplete' then return 0 end
redis.call('HSET', record, 'state', 'complete', 'sizeBytes', sizeBytes, 'expiresAtMs', expiresAtMs)
redis.call('ZADD', index, expiresAtMs, file)
redis.call('ZADD', countedOf(record, countedPrefix), 'XX', expiresAtMs, file)
return 1
