-- Makes a waiting job the next that a worker takes up.
-- KEYS: prioritized, wait
-- ARGV: jobId
-- Returns: 0 when it does not wait any more, or was brought forward before
-- BullMQ takes the last of its plain list before any with a priority, which the job keeps.
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('RPUSH', KEYS[2], ARGV[1])
