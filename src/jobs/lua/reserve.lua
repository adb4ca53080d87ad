-- Reserves a tenant's and the queue's capacity for jobs and assigns positions, or refuses.
-- KEYS: prioritized, wait, active, delayed, meanJobSeconds, meanEncodingSeconds, rate, unfinished,
--   jobIndex, flows, virtualTime, processorDebt, records
-- ARGV: tenant, nowMs, rateLimit, openLimit, queueLimit, cost, windowMs, lowStep, recordLimit,
--   recordBytes, jobId step...
-- Returns: {outcome, remaining, ms until the next window}, of the records where these are too many;
--   for 'reserved' also
--   the outlook of the first job, and the priority of each
local rateKey, openKey, indexKey, flowsKey, timeKey, debtKey, recordsKey = unpack(KEYS, 7)
local tenant, now = ARGV[1], tonumber(ARGV[2])
local rateLimit, openLimit, queueLimit = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local cost, windowMs, lowStep = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local recordLimit, recordBytes = tonumber(ARGV[9]), tonumber(ARGV[10])
local jobs = {}
for i = 11, #ARGV, 2 do jobs[#jobs + 1] = {id = ARGV[i], step = tonumber(ARGV[i + 1])} end
-- A job is added right after its reservation; a later one never appears.
local ADDED_WITHIN_MS = 10000
-- include: soundpost-kit/redis/lua/fixed-window.lua
-- include: bullmq/times-of.lua
-- include: bullmq/queue-places.lua
-- include: outlook.lua
-- include: over-budget.lua
-- Virtual time returns to 1 long before it reaches the largest priority.
local REBASE_AT = math.floor(LARGEST_PRIORITY / 2)
local function refuse(outcome)
  local _, remaining, reset = take(rateKey, rateLimit, 0, windowMs)
  return {outcome, remaining, reset}
end

-- Jobs that ended unnoticed are dropped only when the set looks full: no counter can drift.
if redis.call('SCARD', openKey) + #jobs > openLimit then
  for _, id in ipairs(redis.call('SMEMBERS', openKey)) do
    local created, finished = timesOf(id)
    local reserved = tonumber(redis.call('ZSCORE', indexKey, id) or '0')
    if finished or not created and now - reserved > ADDED_WITHIN_MS then redis.call('SREM', openKey, id) end
  end
  if redis.call('SCARD', openKey) + #jobs > openLimit then return refuse('too-many-unfinished') end
end
local queued, plain, running = lengths()
if queued + #jobs > queueLimit then return refuse('queue-full') end
local _, recordsLeft, recordsReset = take(recordsKey, recordLimit, 0, windowMs)
if recordBytes > recordsLeft then return {'too-many-bytes', recordsLeft, recordsReset} end
local taken, remaining, reset = take(rateKey, rateLimit, cost, windowMs)
if not taken then return {'rate-limited', remaining, reset} end
take(recordsKey, recordLimit, recordBytes, windowMs)

local time = tonumber(redis.call('GET', timeKey) or '1')
-- With no jobs, flows are forgotten but the time stays: a retried job keeps its position.
if queued == 0 and running == 0 then redis.call('DEL', flowsKey) end
if time > REBASE_AT then
  -- Everything moves by the same amount, so the order stays.
  local shift = time - 1
  shiftPriorities(shift)
  local flows = redis.call('HGETALL', flowsKey)
  for i = 1, #flows, 2 do
    redis.call('HSET', flowsKey, flows[i], math.max(1, tonumber(flows[i + 1]) - shift))
  end
  time = 1
  redis.call('SET', timeKey, time)
end
local starts = {}
local slowest = isOverBudget(debtKey, now) and lowStep or 0
for _, job in ipairs(jobs) do
  job.step = math.max(job.step, slowest)
  local flow = tenant .. ':' .. job.step
  local flowEnd = tonumber(redis.call('HGET', flowsKey, flow) or '1')
  -- If a flow exceeds BullMQ's priorities, its last jobs share one and keep their order.
  local start = math.min(LARGEST_PRIORITY, math.max(time, flowEnd))
  redis.call('HSET', flowsKey, flow, start + job.step)
  redis.call('SADD', openKey, job.id)
  redis.call('ZADD', indexKey, now, job.id)
  starts[#starts + 1] = start
end
-- Empty for a repeated submission whose answer was lost.
return {'reserved', remaining, reset, outlook(starts[1] or time), starts}
