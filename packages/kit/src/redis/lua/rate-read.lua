-- Reads the rest of a rate.
-- KEYS: rate
-- ARGV: limit, windowMs
-- Returns: {remaining, ms until the next window}
-- include: fixed-window.lua
local _, remaining, reset = take(KEYS[1], tonumber(ARGV[1]), 0, tonumber(ARGV[2]))
return {remaining, reset}
