-- Confirms a submission's jobs, which may now start, announces them, and stores its answer.
-- KEYS: delayed, prioritized, wait, pc, marker, unfinished, jobIndex, idempotencyRecord
-- ARGV: acceptedChannel, tenant, changeChannel, fingerprint, seed, answer, jobId names...
-- Returns: 1, or 0 if one of the jobs is gone or was dropped
-- include: names.lua
-- include: promote.lua
-- include: soundpost-kit/http/lua/idempotency-answer.lua
local queue = {delayed = KEYS[1], prioritized = KEYS[2], wait = KEYS[3], pc = KEYS[4], marker = KEYS[5]}
local unfinished, index, record = KEYS[6], KEYS[7], KEYS[8]
local accepted, tenant, changes, fingerprint, seed, answer = unpack(ARGV)
local all = 1
for at = 7, #ARGV, 2 do
  local id, names = ARGV[at], ARGV[at + 1]
  local hash = EXTRACTION .. id
  local timestamp, dropped = unpack(redis.call('HMGET', hash, 'timestamp', DROPPED))
  if not timestamp or dropped then
    all = 0
  else
    if redis.call('HSET', hash, CONFIRMED, '1', TENANT, tenant, NAMES, names) > 0 then
      promote(queue, id, hash)
      -- A refusal in between has given them up.
      redis.call('SADD', unfinished, id)
      redis.call('ZADD', index, 'NX', timestamp, id)
    end
    redis.call('PUBLISH', changes, id)
  end
end
redis.call('PUBLISH', accepted, tenant)
if record and all == 1 then keepAnswer(record, fingerprint, seed, answer) end
return all
