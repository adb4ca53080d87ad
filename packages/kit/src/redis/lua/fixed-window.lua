-- Defines take(key, limit, cost, windowMs): counts against a fixed window, which the first opens.
-- KEYS: none
-- ARGV: none
-- Returns: nothing; take returns whether it was counted, the rest, ms until the next window
-- Shared by submissions, reads and wrong keys. A cost of 0 only reads.
local function take(key, limit, cost, windowMs)
  local used = tonumber(redis.call('GET', key) or '0')
  local reset = redis.call('PTTL', key)
  if reset <= 0 then used, reset = 0, windowMs end
  if used + cost > limit then return false, limit - used, reset end
  if cost == 0 then return true, limit - used, reset end
  redis.call('SET', key, used + cost, 'PX', reset)
  return true, limit - used - cost, reset
end
