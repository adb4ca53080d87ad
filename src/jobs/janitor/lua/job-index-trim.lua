-- Removes entries of expired jobs from a page of a tenant's list.
-- KEYS: jobIndex
-- ARGV: endedBeforeMs, skip, page
-- Returns: {entries seen, entries removed}
-- A job is submitted before it ends: only entries that are old enough are checked one by one.
-- include: ../../lua/bullmq/times-of.lua
local index = KEYS[1]
local endedBefore, skip, page = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local ids = redis.call('ZRANGEBYSCORE', index, '-inf', endedBefore, 'LIMIT', skip, page)
local removed = 0
for _, id in ipairs(ids) do
  local created, finished = timesOf(id)
  if not created or (finished and finished < endedBefore) then
    removed = removed + redis.call('ZREM', index, id)
  end
end
return {#ids, removed}
