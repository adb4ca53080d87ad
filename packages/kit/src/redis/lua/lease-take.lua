-- Takes a lease, unless another holds it, who may be asked for it.
-- KEYS: lease, tokens, wish
-- ARGV: who, leaseMs, wishMs
-- Returns: {1 or 0, the holder: '<fencing token> <who>'}
-- The token grows with each change of hands. Who holds the lease already gets a new one, because
-- the answer may have been lost.
local lease, tokens, wish = unpack(KEYS)
local who, leaseMs, wishMs = unpack(ARGV)
local known = redis.call('GET', lease)
if known and string.match(known, '^%d+ (.*)$') ~= who then
  if tonumber(wishMs) > 0 then redis.call('SET', wish, '1', 'PX', wishMs) end
  return {0, known}
end
redis.call('DEL', wish)
local holder = redis.call('INCR', tokens) .. ' ' .. who
redis.call('SET', lease, holder, 'PX', leaseMs)
return {1, holder}
