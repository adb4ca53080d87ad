-- Takes a slot for an attempt, or else joins the waiting jobs.
-- KEYS: prefix
-- ARGV: jobId, key, host, endpoint, perKey, perHost, leaseMs, failingAfter
-- Returns: 0 if it has a slot, otherwise about how many of its key wait
-- include: try-places.lua
for standing = ANSWERS, FAILING do
  local set = slots('host', host, standing)
  held(set)
  if redis.call('ZSCORE', set, id) then
    give(id, key, host, endpoint, standing)
    unwait(key, group, id)
    return 0
  end
end
local standing = standingOf(key, endpoint)
if hasRoom(key, host, endpoint, standing) then
  give(id, key, host, endpoint, standing)
  unwait(key, group, id)
  return 0
end
local function join(set, member)
  redis.call('ZADD', set, 'NX', now, member)
  redis.call('EXPIRE', set, forgetSeconds)
end
join(waiting(key, group), id)
join(groupsOf(key, standing), group)
join(keys, key)
local before = redis.call('ZCARD', waiting(key, group))
for one = ANSWERS, FAILING do before = before + redis.call('ZCARD', groupsOf(key, one)) end
return before
