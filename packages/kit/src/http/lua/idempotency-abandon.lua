-- Frees the key of a request that did nothing, if it still owns the record.
-- KEYS: record
-- ARGV: owner
-- Returns: nothing
-- A record with an answer stays: an earlier request did the work.
local owner, answer = unpack(redis.call('HMGET', KEYS[1], 'owner', 'answer'))
if owner == ARGV[1] and not answer then redis.call('DEL', KEYS[1]) end
