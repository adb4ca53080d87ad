-- Changes the text of a message, with the event.
-- KEYS: message, events
-- ARGV: text, instanceId, updateEvent, streamLength, edition
-- Returns: 1 when it changed, 0 when it had that text or is unknown
local message, events = KEYS[1], KEYS[2]
local text, instanceId, update, length, edition = unpack(ARGV)
if redis.call('EXISTS', message) == 0 or redis.call('HGET', message, 'text') == text then return 0 end
redis.call('HSET', message, 'text', text)
redis.call('XADD', events, 'MAXLEN', '~', length, '*',
  'version', edition, 'instanceId', instanceId, 'event', 'messages.update', 'envelope', update)
return 1
