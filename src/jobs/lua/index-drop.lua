-- Drops jobs that have no record from a tenant's indexes.
-- KEYS: index...
-- ARGV: jobId...
-- Returns: nothing
-- include: bullmq/file-ended.lua
for _, id in ipairs(ARGV) do
  if stateOf(id) == 'missing' then
    for _, index in ipairs(KEYS) do
      if redis.call('TYPE', index).ok == 'set' then redis.call('SREM', index, id)
      else redis.call('ZREM', index, id) end
    end
  end
end
