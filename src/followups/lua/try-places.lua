-- Defines what taking and leaving a slot share (places.ts).
-- KEYS: prefix
-- ARGV: jobId, key, host, perKey, perHost, leaseMs, failingAfter
-- Returns: nothing
local prefix, id, key, host = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local perKey, perHost = tonumber(ARGV[4]), tonumber(ARGV[5])
local lease, failingAfter = tonumber(ARGV[6]), tonumber(ARGV[7])
-- include: ../../jobs/lua/now.lua
local groups = prefix .. ':groups'
local function keyPlaces(name) return prefix .. ':key:' .. name end
local function hostPlaces(name) return prefix .. ':host:' .. name end
local function waiting(group) return prefix .. ':waiting:' .. group end
local function failing(name) return prefix .. ':failing:' .. name end
local counts = {}
local function held(places)
  if not counts[places] then
    redis.call('ZREMRANGEBYSCORE', places, '-inf', now)
    counts[places] = redis.call('ZCARD', places)
  end
  return counts[places]
end
local function hasRoom(k, h)
  if held(keyPlaces(k)) >= perKey then return false end
  local failures = tonumber(redis.call('HGET', failing(h), 'failures') or 0)
  return held(hostPlaces(h)) < (failures >= failingAfter and 1 or perHost)
end
local function give(member, k, h)
  for _, places in ipairs({keyPlaces(k), hostPlaces(h)}) do
    counts[places] = held(places) + redis.call('ZADD', places, now + lease, member)
    redis.call('PEXPIRE', places, lease)
  end
end
local function unwait(group, member)
  redis.call('ZREM', waiting(group), member)
  if redis.call('EXISTS', waiting(group)) == 0 then redis.call('ZREM', groups, group) end
end
