-- Settles a message and moves its status forward, never back, with the events of both.
-- KEYS: message, chat, chats, unread, events, alias
-- ARGV: rank, status, atMs, messageId, chatJid, arrival, instanceId, upsertEvent, updateEvent,
--   streamLength, oldestMs, networkId ('' for none), keepSeconds
-- Returns: 1 when the status moved, otherwise 0
-- A receipt may arrive before the network's own acknowledgement, so any status settles the message.
local message, chat, chats, unread, events, alias = unpack(KEYS)
local rank, word, at, id, jid, kind = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local instanceId, upsert, update, length, oldest = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local networkId, keepSeconds = ARGV[12], ARGV[13]
local function emit(event, envelope)
  redis.call('XADD', events, 'MAXLEN', '~', length, '*',
    'instanceId', instanceId, 'event', event, 'envelope', envelope)
end
local current = redis.call('HGET', message, 'rank')
if not current then return 0 end
if networkId ~= '' then
  redis.call('HSET', message, 'networkId', networkId)
  redis.call('SET', alias, id, 'EX', keepSeconds)
end
if redis.call('HSETNX', message, 'settled', '1') == 1 then
  redis.call('ZADD', chat, at, id)
  redis.call('ZREMRANGEBYSCORE', chat, '-inf', oldest)
  redis.call('ZADD', chats, 'GT', at, jid)
  if kind == 'history' then return 0 end
  if kind == 'incoming' then redis.call('HINCRBY', unread, jid, 1) end
  emit('messages.upsert', upsert)
end
if tonumber(current) >= rank or redis.call('HGET', message, 'status') == 'ERROR' then return 0 end
redis.call('HSET', message, 'rank', rank, 'status', word)
emit('messages.update', update)
return 1
