-- Moves a message's status forward, never back; ERROR is final.
-- KEYS: status, note
-- ARGV: status, keepSeconds, order as JSON, the voice message that it is ('' for none),
--   error ('' for none)
-- Returns: its status now, the voice message that it is, or '', the error of an ERROR, or ''
local status, note, keep = KEYS[1], KEYS[2], ARGV[2]
local order = cjson.decode(ARGV[3])
local function rank(word)
  for index, name in ipairs(order) do if name == word then return index end end
  return 0
end
local function keepNote(field, value)
  if value == '' then return end
  redis.call('HSET', note, field, value)
  redis.call('EXPIRE', note, keep)
end
keepNote('of', ARGV[4])
local function answer(word)
  return { word, redis.call('HGET', note, 'of') or '', redis.call('HGET', note, 'error') or '' }
end
local known = redis.call('GET', status)
if known and (known == 'ERROR' or rank(known) >= rank(ARGV[1])) then return answer(known) end
redis.call('SET', status, ARGV[1], 'EX', keep)
keepNote('error', ARGV[5])
return answer(ARGV[1])
