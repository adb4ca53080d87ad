-- Forgets that a message was about to be sent. Behind the fence.
-- KEYS: attempt
-- ARGV: none
-- Returns: how many were forgotten
return redis.call('DEL', KEYS[1])
