-- Replaces a secret, which keeps working until its expiry.
-- KEYS: hash
-- ARGV: currentField, secret, nowMs, untilMs, maxReplaced
-- Returns: 0, or ms until another one can be replaced
-- The field `replaced`: newest first, each `<secret>:<until, ms>`, separated by spaces.
local currentField, secret, now, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local maxReplaced = tonumber(ARGV[5])
local current, replaced = unpack(redis.call('HMGET', KEYS[1], currentField, 'replaced'))
local kept = {}
local firstEnd = math.huge
for old, oldUntil in string.gmatch(replaced or '', '([^: ]+):(%d+)') do
  if tonumber(oldUntil) > now then
    kept[#kept + 1] = old .. ':' .. oldUntil
    firstEnd = math.min(firstEnd, tonumber(oldUntil))
  end
end
if #kept >= maxReplaced then return firstEnd - now end
if current then
  table.insert(kept, 1, current .. ':' .. untilMs)
  redis.call('HSET', KEYS[1], 'replaced', table.concat(kept, ' '))
end
redis.call('HSET', KEYS[1], currentField, secret)
return 0
