-- Defines stateOf(id), and fileEnded(id, tenant): indexes of jobs by state, and usage by day.
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
local DAY_MS = 24 * 60 * 60 * 1000
local USAGE_DAYS = 90 -- USAGE_DAYS in usage-days.ts
local function decoded(text)
  local isJson, value = pcall(cjson.decode, text or 'null')
  return isJson and type(value) == 'table' and value or {}
end
local function number(of, field) return type(of) == 'table' and tonumber(of[field]) or 0 end
-- Adds an ended job to its key's usage of the day, once, however often it is filed.
local function countUsage(id, tenant, state)
  local hash = EXTRACTION .. id
  local values = redis.pcall('HMGET', hash, COUNTED, 'finishedOn', 'returnvalue', 'progress', PROCESSOR)
  local finished = not values.err and not values[1] and values[2] and tonumber(values[2])
  if not finished then return end
  local result, day = decoded(values[3]), math.floor(finished / DAY_MS)
  local input = type(result.inputFile) == 'table' and result.inputFile or decoded(values[4]).inputFile
  local output = result.outputFile
  local bytesOut = number(output, 'size')
  for _, file in ipairs(type(result.otherFiles) == 'table' and result.otherFiles or {}) do
    bytesOut = bytesOut + number(file, 'size')
  end
  local audio = state == 'completed' and (number(output, 'duration') > 0 and number(output, 'duration')
    or number(input, 'duration')) or 0
  local usage = INDEXES .. 'usage:' .. tenant .. ':' .. string.format('%.0f', day)
  local function add(field, amount)
    -- A damaged counter must not break the lists, which file first.
    if amount > 0 then redis.pcall('HINCRBY', usage, field, string.format('%.0f', amount)) end
  end
  redis.call('HSET', hash, COUNTED, '1')
  add('jobs', 1)
  add('failed', state == 'completed' and 0 or 1)
  add('audioMs', audio * 1000)
  add('bytesIn', number(input, 'size'))
  add('bytesOut', bytesOut)
  add('processorMs', tonumber(values[5] or '0') or 0)
  redis.call('EXPIREAT', usage, string.format('%.0f', (day + USAGE_DAYS + 1) * DAY_MS / 1000))
end
-- A cancelled job is failed at once, but keeps its place until its worker has ended it.
local function fileEnded(id, tenant)
  local state, ended = stateOf(id)
  local score = redis.call('ZSCORE', INDEXES .. 'jobs:' .. tenant, id)
  if score and (state == 'completed' or state == 'failed') then
    redis.call('ZADD', INDEXES .. state .. ':' .. tenant, score, id)
  end
  if ended then
    redis.call('SREM', INDEXES .. 'unfinished:' .. tenant, id)
    countUsage(id, tenant, state)
  end
  return state, score
end
