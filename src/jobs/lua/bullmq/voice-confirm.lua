-- Confirms a voice message that was asked for, which may now be sent, and stores its answer.
-- KEYS: delayed, prioritized, wait, pc, marker, message, job, deliveries, idempotencyRecord
-- ARGV: id, sendId, keepSeconds, fingerprint, seed, answer
-- Returns: 1, or 0 if the message is gone or was dropped
-- include: names.lua
-- include: promote.lua
-- include: soundpost-kit/http/lua/idempotency-answer.lua
local VOICE_SEND = 'spVoiceSend' -- own.voiceSend in bullmq-internals.ts
local queue = {delayed = KEYS[1], prioritized = KEYS[2], wait = KEYS[3], pc = KEYS[4], marker = KEYS[5]}
local message, job, deliveries, record = unpack(KEYS, 6)
local id, sendId, keepSeconds, fingerprint, seed, answer = unpack(ARGV)
if redis.call('EXISTS', message) == 0 or redis.call('HEXISTS', message, DROPPED) == 1 then return 0 end
if redis.call('HSET', message, CONFIRMED, '1') == 1 then promote(queue, id, message) end
if redis.call('EXISTS', job) == 1 then redis.call('HSET', job, VOICE_SEND, sendId) end
redis.call('SADD', deliveries, 'voice ' .. id)
redis.call('EXPIRE', deliveries, keepSeconds)
if record then keepAnswer(record, fingerprint, seed, answer) end
return 1
