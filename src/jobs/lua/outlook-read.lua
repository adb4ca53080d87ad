-- Reads the outlook of a waiting or running job.
-- KEYS: prioritized, wait, active, delayed, meanJobSeconds, meanEncodingSeconds
-- ARGV: jobId
-- Returns: {mean, mean of encoding, in front, running}
-- include: outlook.lua
return outlook(priorityOf(ARGV[1]), ARGV[1])
