-- Defines functions on the positions of extractions in the queue.
-- KEYS: prioritized, wait, active, delayed
-- ARGV: none
-- Returns: nothing
-- BullMQ's score of a job with a priority is priority * 2^32 + a counter.
-- include: names.lua
local UNIT = 4294967296
-- Counts extractions that wait with a priority, wait without one, and run.
local function lengths()
  return redis.call('ZCARD', KEYS[1]), redis.call('LLEN', KEYS[2]), redis.call('LLEN', KEYS[3])
end
-- 0 if it has none.
local function priorityOf(id)
  return tonumber(redis.call('HGET', EXTRACTION .. id, 'priority') or '0')
end
-- Counts jobs waiting and running in front of this one; the id is nil for a job not yet added.
local function before(priority, id)
  local waiting = 0
  if not id then
    local behind = string.format('(%.0f', (priority + 1) * UNIT)
    waiting = redis.call('LLEN', KEYS[2]) + redis.call('ZCOUNT', KEYS[1], '-inf', behind)
  else
    local rank = redis.call('ZRANK', KEYS[1], id)
    if rank then waiting = redis.call('LLEN', KEYS[2]) + rank end
  end
  local running = 0
  for _, other in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if other ~= id and priorityOf(other) <= priority then running = running + 1 end
  end
  return waiting, running
end
-- Moves all waiting, running and delayed jobs forward by this much, but not below 1.
local function shiftPriorities(by)
  local function shift(id)
    local priority = priorityOf(id)
    if priority > 0 then redis.call('HSET', EXTRACTION .. id, 'priority', math.max(1, priority - by)) end
  end
  local scored = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
  for i = 1, #scored, 2 do
    local score = tonumber(scored[i + 1])
    redis.call('ZADD', KEYS[1], math.max(UNIT + score % UNIT, score - by * UNIT), scored[i])
    shift(scored[i])
  end
  for _, id in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do shift(id) end
  for _, id in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do shift(id) end
  for _, id in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do shift(id) end
end
