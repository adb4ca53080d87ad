-- Records a message that is about to be sent, unless its id was recorded before.
-- KEYS: message
-- ARGV: record, rank, status, keepSeconds
-- Returns: the record that is there now
if redis.call('HSETNX', KEYS[1], 'record', ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], 'rank', ARGV[2], 'status', ARGV[3])
  redis.call('EXPIRE', KEYS[1], ARGV[4])
end
return redis.call('HGET', KEYS[1], 'record')
