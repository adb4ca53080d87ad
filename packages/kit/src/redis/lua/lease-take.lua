-- Takes a lease, unless another process holds it; that one may be asked for it.
-- KEYS: lease, tokens, request
-- ARGV: who, leaseMs, requestMs
-- Returns: {1 or 0, the holder: '<fencing token> <who>'}
-- The token grows with each new holder. A holder that takes it again gets a new token too, because
-- the answer may have been lost.
local lease, tokens, request = unpack(KEYS)
local who, leaseMs, requestMs = unpack(ARGV)
local known = redis.call('GET', lease)
if known and string.match(known, '^%d+ (.*)$') ~= who then
  if tonumber(requestMs) > 0 then redis.call('SET', request, '1', 'PX', requestMs) end
  return {0, known}
end
redis.call('DEL', request)
local holder = redis.call('INCR', tokens) .. ' ' .. who
redis.call('SET', lease, holder, 'PX', leaseMs)
return {1, holder}
