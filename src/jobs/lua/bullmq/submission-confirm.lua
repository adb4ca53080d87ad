-- Confirms a submission's jobs, which may now start, and announces them.
-- KEYS: job...
-- ARGV: acceptedChannel, tenant, changeChannel, jobId names...
-- Returns: 1, or 0 if one of them is gone or was dropped
-- include: names.lua
local all = 1
for index, hash in ipairs(KEYS) do
  local at = 2 * index - 1
  if redis.call('EXISTS', hash) == 0 or redis.call('HGET', hash, REFUSED) == DROPPED then
    all = 0
  else
    redis.call('HDEL', hash, REFUSED)
    redis.call('HSET', hash, CONFIRMED, '1', TENANT, ARGV[2], NAMES, ARGV[4 + at])
    redis.call('PUBLISH', ARGV[3], ARGV[3 + at])
  end
end
redis.call('PUBLISH', ARGV[1], ARGV[2])
return all
