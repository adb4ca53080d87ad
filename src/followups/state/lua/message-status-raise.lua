-- Moves a message's status forward, never back.
-- KEYS: status
-- ARGV: status, keepSeconds, order as JSON
-- Returns: its status now
local order = cjson.decode(ARGV[3])
local function rank(word)
  for index, name in ipairs(order) do if name == word then return index end end
  return 0
end
local known = redis.call('GET', KEYS[1])
if known and rank(known) >= rank(ARGV[1]) then return known end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return ARGV[1]
