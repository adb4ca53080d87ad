-- Defines outlook(priority, id): mean durations, and how many jobs are in front of this one.
-- KEYS: prioritized, wait, active, delayed, meanJobSeconds, meanEncodingSeconds
-- ARGV: none
-- Returns: nothing; outlook returns {mean, mean of encoding, in front, running}
-- The id is nil for a job not yet added. outlook.ts reads the answer.
-- include: bullmq/queue-places.lua
local function outlook(priority, id)
  local waiting, running = before(priority, id)
  local _, _, all = lengths()
  local job, encoding = unpack(redis.call('MGET', KEYS[5], KEYS[6]))
  return {job or '', encoding or '', waiting + running, all}
end
