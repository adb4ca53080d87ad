-- Removes an extraction whatever its key holds, and the parent that waits for its end.
-- KEYS: job, parent, index...
-- ARGV: jobId, parentId, prefix of extractions, prefix of parents
-- Returns: nothing
-- BullMQ removes only what it can read.
local id, parentId, prefix, parents = unpack(ARGV)
local function leave(from, member)
  for _, list in ipairs({'wait', 'active', 'paused'}) do redis.call('LREM', from .. list, 0, member) end
  for _, set in ipairs({'prioritized', 'delayed', 'completed', 'failed', 'waiting-children'}) do
    redis.call('ZREM', from .. set, member)
  end
end
local function erase(key)
  for _, part in ipairs({'', ':lock', ':logs', ':dependencies', ':processed', ':failed', ':unsuccessful'}) do
    redis.call('DEL', key .. part)
  end
end
leave(prefix, id)
redis.call('SREM', prefix .. 'stalled', id)
erase(KEYS[1])
if redis.call('ZSCORE', parents .. 'waiting-children', parentId) then
  leave(parents, parentId)
  erase(KEYS[2])
end
for i = 1, #KEYS - 2 do
  local index = KEYS[2 + i]
  if redis.call('TYPE', index).ok == 'set' then redis.call('SREM', index, id)
  else redis.call('ZREM', index, id) end
end
