-- Defines isOverBudget(debtKey, now): whether a key owes more than a minute's processor time.
-- KEYS: none
-- ARGV: none
-- Returns: nothing
local MINUTE_MS = 60000 -- MINUTE_MS in reservation.ts
local function isOverBudget(debtKey, now)
  return tonumber(redis.call('GET', debtKey) or '0') > now + MINUTE_MS
end
