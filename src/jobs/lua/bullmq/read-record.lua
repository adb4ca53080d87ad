-- Defines readRecord(key), to read an extraction together with something else.
-- KEYS: none
-- ARGV: none
-- Returns: nothing; readRecord returns the values of RECORD_FIELDS in bullmq-internals.ts
local function readRecord(key)
  local values = redis.pcall('HMGET', key, 'data', 'timestamp', 'progress', 'processedOn', 'finishedOn', 'returnvalue',
    'failedReason', 'spCancelled', 'spAttempts', 'spErased', 'spConfirmed', 'spVoiceSend')
  -- No hash: NO_HASH in bullmq-internals.ts
  if values.err then return {'', false, false, false, false, false, false, false, false, false, '1'} end
  return values
end
