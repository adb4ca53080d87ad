-- Begins a request with an Idempotency-Key, or returns the state of the earlier one.
-- KEYS: record
-- ARGV: fingerprint, seed, owner, leaseMs, keepMs
-- Returns: {'begun', seed}, {'replay', answer}, {'mismatch'} or {'in-progress'}
-- Uses Redis' clock, so that processes need not agree on the time.
local record = KEYS[1]
local fingerprint, seed, owner, lease, keep = unpack(ARGV)
local stored = redis.pcall('HMGET', record, 'fingerprint', 'seed', 'until', 'answer')
if stored.err then
  redis.call('DEL', record)
  stored = {}
end
-- Done again with the same seed, it is the same work.
if stored[4] and not pcall(cjson.decode, stored[4]) then
  redis.call('HDEL', record, 'answer')
  stored[4] = nil
end
if stored[1] and stored[1] ~= fingerprint then return {'mismatch'} end
if stored[4] then return {'replay', stored[4]} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if (tonumber(stored[3] or nil) or 0) > now then return {'in-progress'} end
seed = stored[2] or seed
redis.call('HSET', record, 'fingerprint', fingerprint, 'seed', seed, 'owner', owner, 'until', now + lease)
if not stored[1] then redis.call('PEXPIRE', record, keep) end
return {'begun', seed}
