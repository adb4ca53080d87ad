-- Counts against a rate, or reads the rest of it with a cost of 0.
-- KEYS: rate
-- ARGV: limit, cost, windowMs
-- Returns: {1 when it was counted, remaining, ms until the next window}
-- include: fixed-window.lua
local taken, remaining, reset = take(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
return {taken and 1 or 0, remaining, reset}
