-- Defines keepAnswer(record, fingerprint, seed, answer): stores the answer of a request's record.
-- KEYS: none
-- ARGV: none
-- Returns: nothing
-- The first answer stays. A record that Redis has lost is written again.
local KEEP_MS = 86400000 -- KEEP_MS in idempotency.ts
local function keepAnswer(record, fingerprint, seed, answer)
  local stored = redis.call('HGET', record, 'seed')
  if stored and stored ~= seed then return end
  redis.call('HSET', record, 'fingerprint', fingerprint, 'seed', seed)
  redis.call('HSETNX', record, 'answer', answer)
  if not stored then redis.call('PEXPIRE', record, KEEP_MS) end
end
