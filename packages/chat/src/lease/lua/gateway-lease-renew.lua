-- Prolongs the gateway's lease while it is still the holder's.
-- KEYS: lease
-- ARGV: holder, leaseMs
-- Returns: 1, or 0 when it is over or another's
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
