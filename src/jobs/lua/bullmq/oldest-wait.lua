-- Finds for how long the job has waited that has waited longest, whatever the queue's length.
-- KEYS: prioritized, wait, delayed
-- ARGV: nowMs, prefix of the queue's keys, 1 when it is the queue of extractions
-- Returns: ms, 0 when none waits
-- How many jobs at the head of a queue are looked at. Jobs of one flow stand in the order they
-- came, and the first of each flow stands near the head (docs/decisions/0004-fairness.md): with
-- more flows than this the oldest may be missed, and one nearly as old is told.
local LOOKED_AT = 200
local prioritized, wait, delayed = unpack(KEYS)
local now, prefix, isExtract = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local oldest = now
-- An announcement that was tried before waits since its next try was due, which no field tells
-- once it is due: of those only the delayed ones that nobody has taken up count.
local function see(ids)
  for _, id in ipairs(ids) do
    local created, started = unpack(redis.call('HMGET', prefix .. id, 'timestamp', 'processedOn'))
    if created and (isExtract or not started) then oldest = math.min(oldest, tonumber(created)) end
  end
end
see(redis.call('ZRANGE', prioritized, 0, LOOKED_AT - 1))
see(redis.call('LRANGE', wait, -LOOKED_AT, -1))
-- BullMQ's score of a delayed job is its time * 0x1000.
local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
if due then oldest = math.min(oldest, tonumber(due) / 4096) end
return math.max(0, math.floor(now - oldest))
