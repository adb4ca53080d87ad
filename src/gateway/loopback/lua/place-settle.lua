-- Assigns an instance its place on the network; a second caller gets the same place.
-- KEYS: places, members, groups
-- ARGV: id, place, digits, member, groupDigits, group, seededDigits seededMember...
-- Returns: the place
local places, members, groups = KEYS[1], KEYS[2], KEYS[3]
local id, place, digits, member, groupDigits, group = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local known = redis.call('HGET', places, id)
if known then return known end
redis.call('HSET', members, digits, member)
for index = 7, #ARGV, 2 do redis.call('HSETNX', members, ARGV[index], ARGV[index + 1]) end
redis.call('HSET', groups, groupDigits, group)
redis.call('HSET', places, id, place)
return place
