-- Moves the reader of the event stream on. Behind the fence.
-- KEYS: cursor
-- ARGV: eventId
-- Returns: 'OK'
return redis.call('SET', KEYS[1], ARGV[1])
