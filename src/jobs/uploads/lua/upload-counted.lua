-- Defines countedOf(record, countedPrefix): the set that counts the tenant's uploads.
-- KEYS: none
-- ARGV: none
-- Returns: nothing
local function countedOf(record, countedPrefix)
  return countedPrefix .. (redis.call('HGET', record, 'tenant') or '')
end
