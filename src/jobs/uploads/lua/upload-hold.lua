-- Keeps the bytes of a complete upload for a job.
-- KEYS: record, holders
-- ARGV: nowMs, jobId
-- Returns: 1, or 0 if the upload is incomplete or expired
local record, holders = unpack(KEYS)
local now, jobId = tonumber(ARGV[1]), ARGV[2]
local state, expires = unpack(redis.call('HMGET', record, 'state', 'expiresAtMs'))
if state ~= 'complete' or tonumber(expires) <= now then return 0 end
redis.call('ZADD', holders, now, jobId)
return 1
