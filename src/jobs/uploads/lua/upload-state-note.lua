-- Writes fields to an existing upload's record.
-- KEYS: record
-- ARGV: field value...
-- Returns: 1, or 0 if the record is gone
-- A deleted record must not reappear in part.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
