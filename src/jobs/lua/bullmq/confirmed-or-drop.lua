-- Checks that a follow-up was confirmed; otherwise it never will be.
-- KEYS: followUp
-- ARGV: none
-- Returns: 1, or 0
-- include: names.lua
if redis.call('HEXISTS', KEYS[1], CONFIRMED) == 1 then return 1 end
redis.call('HSET', KEYS[1], DROPPED, '1')
return 0
