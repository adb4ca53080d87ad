-- Ensures that an unconfirmed job never starts.
-- KEYS: (job)
-- ARGV: jobId
-- Returns: 1, or 0 if it was confirmed
-- include: refuse.lua
return refuse(ARGV[1], DROPPED) == 'confirmed' and 0 or 1
