-- Defines stateOf(id), and fileEnded(id, tenant): the indexes of a tenant's jobs by their state.
-- KEYS: none
-- ARGV: none
-- Returns: nothing; stateOf returns 'missing', 'unconfirmed' or the state, and whether it has ended
-- include: names.lua
local INDEXES = '{soundpost}:sp:' -- ownKey('') in keys.ts
local function stateOf(id)
  local hash = EXTRACTION .. id
  local values = redis.pcall('HMGET', hash, 'finishedOn', 'processedOn', CANCELLED, CONFIRMED)
  if values.err then return 'failed', true end
  local finished, started, cancelled, confirmed = unpack(values)
  if not confirmed then return redis.call('EXISTS', hash) == 1 and 'unconfirmed' or 'missing', false end
  if cancelled then return 'failed', finished end
  if finished then return redis.call('HEXISTS', hash, 'returnvalue') == 1 and 'completed' or 'failed', true end
  return started and 'processing' or 'queued', false
end
-- A cancelled job is failed at once, but keeps its place until its worker has ended it.
local function fileEnded(id, tenant)
  local state, ended = stateOf(id)
  local score = redis.call('ZSCORE', INDEXES .. 'jobs:' .. tenant, id)
  if score and (state == 'completed' or state == 'failed') then
    redis.call('ZADD', INDEXES .. state .. ':' .. tenant, score, id)
  end
  if ended then redis.call('SREM', INDEXES .. 'unfinished:' .. tenant, id) end
  return state, score
end
