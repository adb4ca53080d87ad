-- Deletes the record of a send attempt. Behind the fence.
-- KEYS: attempt
-- ARGV: none
-- Returns: how many were deleted
return redis.call('DEL', KEYS[1])
