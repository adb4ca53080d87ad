-- Counts a wrong key from an address.
-- KEYS: rate
-- ARGV: limit, windowMs
-- Returns: 0 when it was counted, otherwise ms until the next attempt
-- include: fixed-window.lua
local taken, _, reset = take(KEYS[1], tonumber(ARGV[1]), 1, tonumber(ARGV[2]))
return taken and 0 or reset
