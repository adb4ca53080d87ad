-- Defines readRecord(key), to read an extraction together with something else.
-- KEYS: none
-- ARGV: none
-- Returns: nothing; readRecord returns the values of RECORD_FIELDS in bullmq-internals.ts
local function readRecord(key)
  return redis.call('HMGET', key, 'data', 'timestamp', 'progress', 'processedOn', 'finishedOn', 'returnvalue',
    'failedReason', 'spCancelled', 'spAttempts', 'spErased', 'spConfirmed', 'spVoiceSend')
end
