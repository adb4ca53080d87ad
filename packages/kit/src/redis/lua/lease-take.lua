-- Takes a lease that nobody holds, or leaves a wish for it.
-- KEYS: lease, wish
-- ARGV: token, leaseMs, wishMs
-- Returns: 1 when it was taken, otherwise 0
local lease, wish = unpack(KEYS)
local token, leaseMs, wishMs = unpack(ARGV)
if redis.call('SET', lease, token, 'NX', 'PX', leaseMs) then
  redis.call('DEL', wish)
  return 1
end
if tonumber(wishMs) > 0 then redis.call('SET', wish, '1', 'PX', wishMs) end
return 0
