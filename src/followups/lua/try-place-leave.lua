-- Frees an attempt's slot, and gives free slots to those waiting.
-- KEYS: prefix
-- ARGV: jobId, key, host, perKey, perHost, leaseMs, failingAfter, answeredOrFailed, rememberSeconds
-- Returns: the jobs that now have a slot
-- The longest unserved comes first.
-- include: try-places.lua
redis.call('ZREM', keyPlaces(key), id)
redis.call('ZREM', hostPlaces(host), id)
if ARGV[8] == 'answered' then
  redis.call('DEL', failing(host))
elseif ARGV[8] == 'failed' then
  redis.call('HINCRBY', failing(host), 'failures', 1)
  redis.call('HSETNX', failing(host), 'since', now)
  redis.call('EXPIRE', failing(host), ARGV[9])
end
local admitted, progress = {}, true
while progress do
  progress = false
  for _, group in ipairs(redis.call('ZRANGE', groups, 0, -1)) do
    local k, h = string.match(group, '^(%S+) (%S+)$')
    if (k == key or h == host) and hasRoom(k, h) then
      local member = redis.call('ZRANGE', waiting(group), 0, 0)[1]
      if member then
        give(member, k, h)
        redis.call('ZADD', groups, 'XX', now, group)
        admitted[#admitted + 1] = member
        progress = true
      end
      unwait(group, member or '')
    end
  end
end
return admitted
