-- Notes the archive id of the last message that was dealt with. Behind the fence.
-- KEYS: seen
-- ARGV: archiveId
-- Returns: 'OK'
return redis.call('SET', KEYS[1], ARGV[1])
