-- Reads a tenant's unfinished jobs in a state, and files those that have ended or are cancelled.
-- KEYS: unfinished
-- ARGV: tenant, state
-- Returns: the jobs in that state, each followed by when it was submitted, ms
-- include: file-ended.lua
local tenant, wanted = ARGV[1], ARGV[2]
local found = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local state, score = fileEnded(id, tenant)
  if state == wanted and score then
    found[#found + 1] = id
    found[#found + 1] = score
  end
end
return found
