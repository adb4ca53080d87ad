-- Writes fields in the record of an upload that is there.
-- KEYS: record
-- ARGV: field value...
-- Returns: 1, or 0 when the record is gone
-- A record that is gone must not come back as half of one.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
