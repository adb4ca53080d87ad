-- Advances the reader of the event stream. Behind the fence.
-- KEYS: cursor
-- ARGV: eventId
-- Returns: 'OK'
return redis.call('SET', KEYS[1], ARGV[1])
