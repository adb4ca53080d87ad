-- Frees an attempt's slot, notes what the endpoint answered, and gives free slots to those waiting.
-- KEYS: prefix
-- ARGV: jobId, key, host, endpoint, perKey, perHost, leaseMs, failingAfter, answer, address,
--   rememberSeconds, rememberEndpoints
-- Returns: the jobs that now have a slot
-- An answer is a status, '0' for none, or '' to note nothing.
-- include: try-places.lua
local answer, address = ARGV[9], ARGV[10]
local rememberSeconds, rememberEndpoints = ARGV[11], tonumber(ARGV[12])
-- How many keys, and endpoints of a key, are considered: those unserved for longest.
local MOST_KEYS, MOST_GROUPS = 100, 20
for standing = ANSWERS, FAILING do
  redis.call('ZREM', slots('key', key, standing), id)
  redis.call('ZREM', slots('host', host, standing), id)
end
redis.call('ZREM', alone(endpoint), id)
-- One that leaves waits no longer either.
redis.call('ZREM', waiting(key, group), id)
redis.call('ZREM', own(key, endpoint), id)
local function noteAnswer()
  local status = tonumber(answer)
  local state = stateOf(key, endpoint) or {endpoint = address, failures = 0, hasAnswered = false}
  -- EDITION in packages/kit/src/redis/record.ts.
  state.version = 1
  if status > 0 and status < 500 then
    state.failures, state.failedSince, state.hasAnswered = 0, nil, true
  else
    state.failures, state.failedSince = state.failures + 1, state.failedSince or now
  end
  state.lastAnswer, state.lastAt = status, now
  local latest = states(key) .. ':latest'
  redis.call('HSET', states(key), endpoint, cjson.encode(state))
  redis.call('ZADD', latest, now, endpoint)
  local tooMany = redis.call('ZCARD', latest) - rememberEndpoints
  if tooMany > 0 then
    local oldest = redis.call('ZPOPMIN', latest, tooMany)
    for at = 1, #oldest, 2 do redis.call('HDEL', states(key), oldest[at]) end
  end
  redis.call('EXPIRE', states(key), rememberSeconds)
  redis.call('EXPIRE', latest, rememberSeconds)
end
if answer ~= '' and isRemembered(endpoint) then
  noteAnswer()
  local standing = standingOf(key, endpoint)
  for one = ANSWERS, FAILING do
    local since = one ~= standing and redis.call('ZSCORE', groupsOf(key, one), group)
    if since then
      redis.call('ZREM', groupsOf(key, one), group)
      redis.call('ZADD', groupsOf(key, standing), since, group)
    end
  end
end
-- Its longest unserved endpoint that may have a slot.
local function nextOf(k)
  local found
  for standing = ANSWERS, FAILING do
    local of = isBelow(keyLimits, 'key', k, standing)
      and redis.call('ZRANGE', groupsOf(k, standing), 0, MOST_GROUPS - 1, 'WITHSCORES') or {}
    for at = 1, #of, 2 do
      local h, e = string.match(of[at], '^(%S+) (%S+)$')
      local since = tonumber(of[at + 1])
      if found and found.since <= since then break end
      if (k == key or h == host) and hasRoom(k, h, e, standingOf(k, e)) then
        found = {group = of[at], since = since, host = h, endpoint = e}
        break
      end
    end
  end
  return found
end
local admitted = {}
local function admit(k)
  local found = nextOf(k)
  if not found then return false end
  local member = redis.call('ZRANGE', waiting(k, found.group), 0, 0)[1]
  if member then
    give(member, k, found.host, found.endpoint, standingOf(k, found.endpoint))
    for standing = ANSWERS, FAILING do
      redis.call('ZADD', groupsOf(k, standing), 'XX', now, found.group)
    end
    redis.call('ZADD', keys, 'XX', now, k)
    admitted[#admitted + 1] = member
  end
  unwait(k, found.group, member or '')
  return true
end
local progress = true
while progress do
  progress = false
  local isOwnSeen = false
  for _, k in ipairs(redis.call('ZRANGE', keys, 0, MOST_KEYS - 1)) do
    isOwnSeen = isOwnSeen or k == key
    progress = admit(k) or progress
  end
  if not isOwnSeen then progress = admit(key) or progress end
end
return admitted
