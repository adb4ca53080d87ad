-- Renews a lease if the holder still has it.
-- KEYS: lease, request
-- ARGV: holder, leaseMs
-- Returns: 'held', 'wanted' if another process waits for it, 'lost' if it is over or another's
local lease, request = unpack(KEYS)
if redis.call('GET', lease) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE', lease, ARGV[2])
return redis.call('EXISTS', request) == 1 and 'wanted' or 'held'
