-- Writes a running job's state, whose progress never falls, and renews its lock.
-- KEYS: job, lock
-- ARGV: token, progress as JSON, changeChannel, jobId, lockMs, worker, ms of processor time since
-- Returns: 'held', 'cancelled', or 'lost' if another worker has the lock
-- include: names.lua
local hash, lock = unpack(KEYS)
local token, text, channel, id, lockMs, working, spent = unpack(ARGV)
if redis.call('GET', lock) ~= token then return 'lost' end
redis.call('PEXPIRE', lock, lockMs)
if spent ~= '0' then redis.call('HINCRBY', hash, PROCESSOR, spent) end
if working ~= '' then redis.call('HSET', hash, WORKING, working)
else redis.call('HDEL', hash, WORKING) end
if redis.call('HEXISTS', hash, CANCELLED) == 1 then return 'cancelled' end
local floor = tonumber(redis.call('HGET', hash, PROGRESS_FLOOR) or '0')
local progress = cjson.decode(text).progress
if floor > progress then
  text = string.gsub(text, '"progress":%d+', '"progress":' .. floor, 1)
else
  floor = progress
end
if redis.call('HGET', hash, 'progress') ~= text then
  redis.call('HSET', hash, 'progress', text, PROGRESS_FLOOR, floor)
  redis.call('PUBLISH', channel, id)
end
return 'held'
