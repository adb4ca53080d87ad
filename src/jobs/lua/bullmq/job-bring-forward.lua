-- Makes a waiting job the next that a worker takes up.
-- KEYS: prioritized, wait
-- ARGV: jobId
-- Returns: 0 if it no longer waits, or was brought forward before
-- BullMQ takes the end of its plain list before any priority; the job keeps its own.
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('RPUSH', KEYS[2], ARGV[1])
