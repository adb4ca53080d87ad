-- Records an upload before its first byte is stored, within its tenant's budget, if any.
-- KEYS: record, index, counted
-- ARGV: file, expiresAtMs, sizeBytes, maxUploads, maxBytes, recordPrefix, field value...
-- Returns: {}, or {exceeded limit, seconds until the first counted upload expires}
local record, index, counted = unpack(KEYS)
local file, expires, size = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local maxUploads, maxBytes, recordPrefix = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
if maxUploads then
  local time = redis.call('TIME')
  local now = time[1] * 1000
  redis.call('ZREMRANGEBYSCORE', counted, '-inf', now)
  local files = redis.call('ZRANGE', counted, 0, -1, 'WITHSCORES')
  local bytes = size
  for i = 1, #files, 2 do
    local counted = redis.pcall('HGET', recordPrefix .. files[i], 'sizeBytes')
    bytes = bytes + (type(counted) == 'string' and tonumber(counted) or 0)
  end
  local soonest = math.max(1, math.ceil((tonumber(files[2] or expires) - now) / 1000))
  if #files / 2 >= maxUploads then return {'uploads', soonest} end
  if bytes > maxBytes then return {'bytes', soonest} end
  redis.call('ZADD', counted, expires, file)
  if redis.call('PTTL', counted) < expires - now then redis.call('PEXPIREAT', counted, expires) end
end
redis.call('HSET', record, unpack(ARGV, 7))
redis.call('ZADD', index, expires, file)
return {}
