-- Stores the archive id of the last handled message. Behind the fence.
-- KEYS: seen
-- ARGV: archiveId
-- Returns: 'OK'
return redis.call('SET', KEYS[1], ARGV[1])
