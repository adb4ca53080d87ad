-- Takes the gateway's lease, unless another process has it.
-- KEYS: lease, tokens
-- ARGV: id, home, leaseMs
-- Returns: {1 or 0, who has it now: '<fencing token> <id> <home>'}
-- The token grows with each change of hands. A process that has the lease already gets a new
-- token, for the answer may have been lost.
local lease, tokens = KEYS[1], KEYS[2]
local id, home, leaseMs = unpack(ARGV)
local known = redis.call('GET', lease)
if known and string.match(known, '^%d+ (%S+)') ~= id then return {0, known} end
local holder = redis.call('INCR', tokens) .. ' ' .. id .. ' ' .. home
redis.call('SET', lease, holder, 'PX', leaseMs)
return {1, holder}
