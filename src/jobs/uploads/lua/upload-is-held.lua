-- Checks whether a job still holds an upload.
-- KEYS: holders
-- ARGV: appearedByMs
-- Returns: 1 or 0
-- Jobs need not report their end: each check reads the jobs and drops those that are over.
-- include: ../../lua/bullmq/times-of.lua
local holders, appearedBy = KEYS[1], tonumber(ARGV[1])
local entries = redis.call('ZRANGE', holders, 0, -1, 'WITHSCORES')
for i = 1, #entries, 2 do
  local id, since = entries[i], tonumber(entries[i + 1])
  local created, finished = timesOf(id)
  if created and not finished then return 1 end
  if not created and since > appearedBy then return 1 end
  redis.call('ZREM', holders, id)
end
return 0
