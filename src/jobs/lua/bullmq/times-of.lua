-- Defines timesOf(id): when an extraction was accepted and when it ended, ms.
-- KEYS: none
-- ARGV: none
-- Returns: nothing; timesOf returns false for what has not happened
-- include: names.lua
local function timesOf(id)
  local created, finished = unpack(redis.call('HMGET', EXTRACTION .. id, 'timestamp', 'finishedOn'))
  return tonumber(created or nil) or false, tonumber(finished or nil) or false
end
