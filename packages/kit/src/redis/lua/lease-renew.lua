-- Prolongs a lease while it is still the holder's.
-- KEYS: lease, wish
-- ARGV: holder, leaseMs
-- Returns: 'held', 'wanted' when somebody waits for it, 'lost' when it is over or another's
local lease, wish = unpack(KEYS)
if redis.call('GET', lease) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE', lease, ARGV[2])
return redis.call('EXISTS', wish) == 1 and 'wanted' or 'held'
