-- Stores when a message is about to be sent, unless it was stored before. Behind the fence.
-- KEYS: attempt
-- ARGV: nowMs, keepSeconds
-- Returns: when it was stored before, or nothing
return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2], 'NX', 'GET')
