-- Writes a field of ours in the hash of a job that is there.
-- KEYS: job
-- ARGV: field, value
-- Returns: 'new', 'known' when it had the field, or 'absent'
-- Where a failover lost the job, a field of ours alone would pass for it: BullMQ adds no id that
-- has a hash.
if redis.call('EXISTS', KEYS[1]) == 0 then return 'absent' end
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) == 1 and 'new' or 'known'
