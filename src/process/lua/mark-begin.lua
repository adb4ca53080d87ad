-- Gives Redis another mark, unless somebody else has changed it since it was seen.
-- KEYS: mark
-- ARGV: seen (empty: none), id
-- Returns: the id that Redis has now
local found = redis.call('HGET', KEYS[1], 'id') or ''
if found ~= ARGV[1] then return found end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'id', ARGV[2], 'renewals', 0)
return ARGV[2]
