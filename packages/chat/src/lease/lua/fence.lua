-- Lets the script that follows write only while its caller holds the gateway's lease.
-- KEYS: own..., lease
-- ARGV: own..., holder
-- Returns: nothing, or an error; defines own, the number of the script's own arguments
-- The lease's key and holder come last, so that the script counts its own from 1.
local NOT_HOLDER = 'NOTHOLDER' -- NOT_HOLDER in lease.ts
local own = #ARGV - 1
if redis.call('GET', KEYS[#KEYS]) ~= ARGV[#ARGV] then
  return redis.error_reply(NOT_HOLDER .. ' another process has the lease')
end
