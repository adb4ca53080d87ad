-- Moves a chat's messages to another JID, for networks that give a group a new id.
-- KEYS: from, to, chats, unread
-- ARGV: fromJid, toJid
-- Returns: 1 when there was anything to move, otherwise 0
local from, to, chats, unread = unpack(KEYS)
local old, now = ARGV[1], ARGV[2]
local at = redis.call('ZSCORE', chats, old)
if not at then return 0 end
redis.call('ZUNIONSTORE', to, 2, from, to, 'AGGREGATE', 'MAX')
redis.call('DEL', from)
redis.call('ZADD', chats, 'GT', at, now)
redis.call('ZREM', chats, old)
local count = redis.call('HGET', unread, old)
if count then redis.call('HINCRBY', unread, now, count) end
redis.call('HDEL', unread, old)
return 1
