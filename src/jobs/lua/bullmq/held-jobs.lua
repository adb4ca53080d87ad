-- Lists the locked jobs of a queue.
-- KEYS: active
-- ARGV: prefix of the queue's keys
-- Returns: their ids, each followed by the token of its lock
local found = {}
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local token = redis.call('GET', ARGV[1] .. id .. ':lock')
  if token then
    found[#found + 1] = id
    found[#found + 1] = token
  end
end
return found
