-- Takes a slot for an attempt, or else joins the waiting jobs.
-- KEYS: prefix
-- ARGV: jobId, key, host, perKey, perHost, leaseMs, failingAfter
-- Returns: 0 if it has a slot, otherwise how many wait
-- include: try-places.lua
local group = key .. ' ' .. host
held(hostPlaces(host))
if redis.call('ZSCORE', hostPlaces(host), id) or hasRoom(key, host) then
  give(id, key, host)
  unwait(group, id)
  return 0
end
redis.call('ZADD', waiting(group), 'NX', now, id)
redis.call('ZADD', groups, 'NX', now, group)
return redis.call('ZCARD', waiting(group))
