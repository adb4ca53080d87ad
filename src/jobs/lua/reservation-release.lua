-- Releases the reservations of a failed submission's jobs, unless they are confirmed.
-- KEYS: unfinished, jobIndex
-- ARGV: jobId...
-- Returns: nothing
-- include: bullmq/names.lua
for _, id in ipairs(ARGV) do
  if redis.call('HEXISTS', EXTRACTION .. id, CONFIRMED) == 0 then
    redis.call('SREM', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
  end
end
