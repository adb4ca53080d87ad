-- Adds processor time to a key's debt, which time pays off.
-- KEYS: debt
-- ARGV: ms
-- Returns: 1 if the key owes more than a minute's worth, else 0
-- include: now.lua
-- include: over-budget.lua
local untilMs = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0')) + tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.0f', untilMs), 'PX', math.max(1, math.ceil(untilMs - now)))
return isOverBudget(KEYS[1], now) and 1 or 0
