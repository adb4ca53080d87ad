-- Marks a message that is about to be sent as handed over to its network, or takes the mark away.
-- KEYS: message
-- ARGV: token of the attempt, '1' to mark or '0' to take its mark away
-- Returns: 1 when the mark is now this attempt's, or was taken away; 0 when it is another's, or the
--   message is settled or unknown
-- The client may send this twice: a repetition of the same attempt has the same outcome.
local message, token, isOn = KEYS[1], ARGV[1], ARGV[2] == '1'
if redis.call('EXISTS', message) == 0 or redis.call('HEXISTS', message, 'settled') == 1 then return 0 end
if isOn then redis.call('HSETNX', message, 'marked', token) end
if redis.call('HGET', message, 'marked') ~= token then return 0 end
if not isOn then redis.call('HDEL', message, 'marked') end
return 1
