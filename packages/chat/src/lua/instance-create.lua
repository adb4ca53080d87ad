-- Creates an instance: reserves its name and its token, both or neither.
-- KEYS: records, names, tokens
-- ARGV: id, name, tokenHash, record
-- Returns: 'created', or which of the two is in use: 'name' or 'token'
local records, names, tokens = KEYS[1], KEYS[2], KEYS[3]
local id, name, tokenHash, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('HEXISTS', names, name) == 1 then return 'name' end
if redis.call('HEXISTS', tokens, tokenHash) == 1 then return 'token' end
redis.call('HSET', names, name, id)
redis.call('HSET', tokens, tokenHash, id)
redis.call('HSET', records, id, record)
return 'created'
