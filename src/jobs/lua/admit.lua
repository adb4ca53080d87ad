-- Admits a request by its API key and the key's rate, or counts a wrong key of its address.
-- KEYS: wrongKeys, apiKey, rate, job
-- ARGV: mac, nowMs, limit, cost
-- Returns: {'blocked', ms until the next window}, {'no-key'}, or {'known', …} with the rate, the
--   key's fields, and the record of the job where one is asked for (admission.ts)
-- HMACs are compared here: Lua compares strings by identity, in the same time whatever they hold.
-- Constants stand in the script: every argument costs each request time.
local WINDOW_MS = 60000 -- RATE_WINDOW_SECONDS * 1000 in rate.ts
local WRONG_KEYS_PER_MINUTE = 30 -- WRONG_KEYS_PER_MINUTE in rate.ts
local PAUSED = 'pausedAtMs' -- PAUSED_FIELD in api-keys.ts
local failedKey, key, rate, job = unpack(KEYS)
local mac, now, limit, cost = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
-- include: soundpost-kit/redis/lua/fixed-window.lua
-- include: bullmq/read-record.lua
local EDITION = '1' -- EDITION in record.ts
local stored = redis.pcall('HMGET', key, 'mac', 'replaced', 'revokedAtMs', 'name', 'scopes', 'instances',
  'createdAtMs', PAUSED, 'version')
-- Not a hash, or of another edition: as if there were none.
if stored.err or stored[9] and stored[9] ~= EDITION then stored = {} end
local current, replaced, revoked, name, scopes, instances, created, paused = unpack(stored, 1, 8)
local isCurrent, isReplaced = current == mac, false
for old, untilMs in string.gmatch(replaced or '', '([^: ]+):(%d+)') do
  if old == mac and now < tonumber(untilMs) then isReplaced = true end
end
if mac == '' or revoked or not (isCurrent or isReplaced) then
  local counted, _, reset = take(failedKey, WRONG_KEYS_PER_MINUTE, 1, WINDOW_MS)
  if not counted then return {'blocked', reset} end
  return {'no-key'}
end
local taken, remaining, reset = take(rate, limit, cost, WINDOW_MS)
local fields = {}
if job then fields = readRecord(job) end
return {'known', taken and 1 or 0, remaining, reset, name, scopes, instances, created, paused or '',
  isCurrent and 1 or 0, fields}
