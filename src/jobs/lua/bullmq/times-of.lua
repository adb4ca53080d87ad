-- Defines timesOf(id): when an extraction was accepted and when it ended, ms.
-- KEYS: none
-- ARGV: none
-- Returns: nothing; timesOf returns false for what has not happened, or cannot be read
-- include: names.lua
local function timesOf(id)
  local times = redis.pcall('HMGET', EXTRACTION .. id, 'timestamp', 'finishedOn')
  if times.err then return false, false end
  local created, finished = unpack(times)
  return tonumber(created or nil) or false, tonumber(finished or nil) or false
end
