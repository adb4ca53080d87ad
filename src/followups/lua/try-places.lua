-- Defines what taking and leaving a slot share (places.ts).
-- KEYS: prefix
-- ARGV: jobId, key, host, endpoint, perKey, perHost, leaseMs, failingAfter
-- Returns: nothing
-- An endpoint is a digest, or -<standing> for one that is not remembered.
local prefix, id, key, host, endpoint = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local perKey, perHost = tonumber(ARGV[5]), tonumber(ARGV[6])
local lease, failingAfter = tonumber(ARGV[7]), tonumber(ARGV[8])
-- include: ../../jobs/lua/now.lua
-- Waiting jobs return by themselves before.
local forgetSeconds = 24 * 60 * 60
-- Standings: 1 answers, 2 has not answered yet, 3 keeps failing.
local ANSWERS, UNKNOWN, FAILING = 1, 2, 3
-- How many slots endpoints of a standing and of worse ones hold at most. Beyond half of its key's,
-- an endpoint gets only its first: one that stops to answer must leave some to others.
local keyLimits = {perKey, math.max(1, math.floor(perKey * 3 / 4)), math.max(1, math.floor(perKey / 4))}
local firstsFrom = math.floor(perKey / 2)
local hostLimits = {perHost, perHost, math.max(1, perHost - 2)}
local group = host .. ' ' .. endpoint
local keys = prefix .. ':keys'
local function groupsOf(k, standing) return prefix .. ':groups:' .. k .. ':' .. standing end
local function waiting(k, g) return prefix .. ':waiting:' .. k .. ' ' .. g end
local function slots(scope, name, standing) return prefix .. ':' .. scope .. ':' .. name .. ':' .. standing end
local function alone(e) return prefix .. ':alone:' .. e end
local function own(k, e) return prefix .. ':own:' .. k .. ' ' .. e end
local function states(k) return prefix .. ':endpoints:' .. k end
local function isRemembered(e) return string.sub(e, 1, 1) ~= '-' end
local function stateOf(k, e)
  local text = redis.call('HGET', states(k), e)
  if not text then return nil end
  local isReadable, state = pcall(cjson.decode, text)
  -- A damaged one is as if nothing were known.
  return isReadable and type(state) == 'table' and tonumber(state.failures) and state or nil
end
local function standingOf(k, e)
  if not isRemembered(e) then return tonumber(string.sub(e, 2)) end
  local state = stateOf(k, e)
  if not state then return UNKNOWN end
  local isFailing = state.failures >= failingAfter or (state.failures > 0 and not state.hasAnswered)
  return isFailing and FAILING or ANSWERS
end
local counts = {}
local function held(set)
  if not counts[set] then
    redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
    counts[set] = redis.call('ZCARD', set)
  end
  return counts[set]
end
local function heldFrom(scope, name, best)
  local sum = 0
  for standing = best, FAILING do sum = sum + held(slots(scope, name, standing)) end
  return sum
end
local function isBelow(limits, scope, name, standing)
  for best = ANSWERS, standing do
    if heldFrom(scope, name, best) >= limits[best] then return false end
  end
  return true
end
local function mayAsk(k, e, standing)
  if not isRemembered(e) then return true end
  if standing ~= ANSWERS then return held(alone(e)) == 0 end
  return held(own(k, e)) == 0 or heldFrom('key', k, ANSWERS) < firstsFrom
end
local function hasRoom(k, h, e, standing)
  return isBelow(keyLimits, 'key', k, standing)
    and isBelow(hostLimits, 'host', h, standing)
    and mayAsk(k, e, standing)
end
local function give(member, k, h, e, standing)
  local sets = {slots('key', k, standing), slots('host', h, standing)}
  if isRemembered(e) then
    sets[3] = own(k, e)
    if standing ~= ANSWERS then sets[4] = alone(e) end
  end
  for _, set in ipairs(sets) do
    counts[set] = held(set) + redis.call('ZADD', set, now + lease, member)
    redis.call('PEXPIRE', set, lease)
  end
end
local function unwait(k, g, member)
  redis.call('ZREM', waiting(k, g), member)
  if redis.call('EXISTS', waiting(k, g)) == 1 then return end
  local left = 0
  for standing = ANSWERS, FAILING do
    redis.call('ZREM', groupsOf(k, standing), g)
    left = left + redis.call('EXISTS', groupsOf(k, standing))
  end
  if left == 0 then redis.call('ZREM', keys, k) end
end
