-- Renews the lease of a running request, if it still owns the record.
-- KEYS: record
-- ARGV: owner, leaseMs
-- Returns: nothing
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'until', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
