-- Counts the unfinished jobs of sets, and drops from them those that have ended or are gone.
-- KEYS: sets of ids...
-- ARGV: prefix of an id
-- Returns: a number for each set
-- A worker that dies leaves an ended one. Large sets are counted as they are, to hold up nobody.
local LOOKED_AT_MOST = 2000
local left, counts = LOOKED_AT_MOST, {}
for _, set in ipairs(KEYS) do
  local count = redis.pcall('SCARD', set)
  if type(count) ~= 'number' then
    -- It holds another type.
    count = 0
  elseif count <= left then
    left = left - count
    for _, id in ipairs(redis.call('SMEMBERS', set)) do
      local job = ARGV[1] .. id
      if redis.call('EXISTS', job) == 0 or redis.call('HEXISTS', job, 'finishedOn') == 1 then
        count = count - redis.call('SREM', set, id)
      end
    end
  end
  counts[#counts + 1] = count
end
return counts
