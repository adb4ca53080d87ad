-- Defines refuse(id, how): settles that a job is not started, unless it is confirmed already.
-- KEYS: none
-- ARGV: none
-- Returns: nothing; refuse returns what the job is: 'confirmed', 'refused' or 'absent'
-- include: names.lua
local function refuse(id, how)
  local hash = EXTRACTION .. id
  if redis.call('HEXISTS', hash, CONFIRMED) == 1 then return 'confirmed' end
  if redis.call('EXISTS', hash) == 0 then return 'absent' end
  redis.call('HSET', hash, REFUSED, how)
  return 'refused'
end
