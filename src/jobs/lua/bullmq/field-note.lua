-- Sets our field in an existing job's hash.
-- KEYS: job
-- ARGV: field, value
-- Returns: 'new', 'known' if it was set before, or 'absent'
-- If a failover lost the job, our field alone would look like one: BullMQ then adds no such id.
if redis.call('EXISTS', KEYS[1]) == 0 then return 'absent' end
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) == 1 and 'new' or 'known'
