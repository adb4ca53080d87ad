-- Defines refuse(id, how): ensures that an unconfirmed job never starts.
-- KEYS: none
-- ARGV: none
-- Returns: nothing; refuse returns the job's state: 'confirmed', 'refused' or 'absent'
-- include: names.lua
local function refuse(id, how)
  local hash = EXTRACTION .. id
  if redis.call('HEXISTS', hash, CONFIRMED) == 1 then return 'confirmed' end
  if redis.call('EXISTS', hash) == 0 then return 'absent' end
  redis.call('HSET', hash, REFUSED, how)
  return 'refused'
end
