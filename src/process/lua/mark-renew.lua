-- Counts a renewal of the mark.
-- KEYS: mark
-- ARGV: id
-- Returns: the renewals so far; 0 if Redis has another mark, or none
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return 0 end
return redis.call('HINCRBY', KEYS[1], 'renewals', 1)
