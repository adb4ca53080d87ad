-- Moves the mean job durations towards an ended job's.
-- KEYS: meanJobSeconds, meanEncodingSeconds
-- ARGV: jobSeconds, encodingSeconds
-- Returns: nothing
-- The share of the mean that one job replaces.
local WEIGHT = 0.1
local function move(key, measured)
  local mean, seconds = redis.call('GET', key), tonumber(measured)
  if mean then seconds = tonumber(mean) * (1 - WEIGHT) + seconds * WEIGHT end
  redis.call('SET', key, tostring(seconds))
end
move(KEYS[1], ARGV[1])
move(KEYS[2], ARGV[2])
