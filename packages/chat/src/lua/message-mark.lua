-- Marks a message that is about to be sent as handed over to its network, or takes the mark away.
-- KEYS: message
-- ARGV: mark ('1' or '0')
-- Returns: 1 when the mark changed; 0 when it was so before, or the message is settled or unknown
local message, mark = KEYS[1], ARGV[1]
if redis.call('EXISTS', message) == 0 or redis.call('HEXISTS', message, 'settled') == 1 then return 0 end
if mark == '1' then return redis.call('HSETNX', message, 'marked', '1') end
return redis.call('HDEL', message, 'marked')
