-- Finds the longest wait in a queue, in time independent of its length.
-- KEYS: prioritized, wait, delayed
-- ARGV: nowMs, prefix of the queue's keys, 1 for the queue of extractions
-- Returns: ms, 0 if no job waits
-- Jobs checked at the head of the queue. A flow's jobs stand in order, its first near the head
-- (docs/decisions/0004-fairness.md): with more flows than this, a nearly oldest job is reported.
local LOOKED_AT = 200
local prioritized, wait, delayed = unpack(KEYS)
local now, prefix, isExtract = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local oldest = now
-- A retried announcement waits since its retry was due, which no field records. Only delayed ones
-- not yet taken count.
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
