-- Settles that a job which was not confirmed is never started.
-- KEYS: (job)
-- ARGV: jobId
-- Returns: 1, or 0 when it was confirmed after all
-- include: refuse.lua
return refuse(ARGV[1], DROPPED) == 'confirmed' and 0 or 1
