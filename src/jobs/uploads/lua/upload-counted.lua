-- Defines countedOf(record, countedPrefix): the set in which the tenant's uploads are counted.
-- KEYS: none
-- ARGV: none
-- Returns: nothing
local function countedOf(record, countedPrefix)
  return countedPrefix .. (redis.call('HGET', record, 'tenant') or '')
end
