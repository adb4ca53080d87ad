-- Refuses jobs of a failed submission, and releases the reservations of those not added.
-- KEYS: unfinished, jobIndex
-- ARGV: jobId...
-- Returns: nothing
-- include: bullmq/refuse.lua
for _, id in ipairs(ARGV) do
  if refuse(id, NOT_ACCEPTED) == 'absent' then
    redis.call('SREM', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
  end
end
