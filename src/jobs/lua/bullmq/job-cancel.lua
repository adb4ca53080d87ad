-- Marks a job as cancelled; claims it if it waits, otherwise notifies its worker.
-- KEYS: prioritized, wait, active, delayed, job, lock
-- ARGV: jobId, token, cancelChannel, changeChannel
-- Returns: 'missing', 'finished', 'claimed' (under the token), or 'notified'
-- include: names.lua
-- How long a claimed job can stay unfailed; then it stalls, and its next worker sees the flag.
local CLAIM_MS = 5000
local prioritized, wait, active, delayed, hash, lock = unpack(KEYS)
local id, token, channel, changes = unpack(ARGV)
if redis.call('EXISTS', hash) == 0 then return 'missing' end
if redis.call('HEXISTS', hash, 'finishedOn') == 1 then return 'finished' end
redis.call('HSET', hash, CANCELLED, '1')
redis.call('PUBLISH', changes, id)
if redis.call('ZREM', prioritized, id) == 1 or redis.call('LREM', wait, 1, id) == 1
  or redis.call('ZREM', delayed, id) == 1 then
  redis.call('LPUSH', active, id)
  redis.call('SET', lock, token, 'PX', CLAIM_MS)
  return 'claimed'
end
redis.call('PUBLISH', channel, id)
return 'notified'
