-- Finds the first waiting job of none of the given tenants, or else of one that is not served.
-- KEYS: prioritized, wait
-- ARGV: prefix of the queue's keys, prefix of API keys, number of served ones, served and others...
-- Returns: {id, tenant, submitted at, 1 if in front}, or nothing; none of a paused key
-- No caller can write `"tenant":"` into the data: JSON escapes quotation marks in a text.
local PAUSED = 'pausedAtMs' -- PAUSED_FIELD in api-keys.ts
-- Search depth: as many as the unfinished jobs of five keys, at 5 µs each.
local LOOKED_FOR_AMONG = 500
local prefix, apiKeys, served, known, first = ARGV[1], ARGV[2], {}, {}, nil
for i = 4, #ARGV do
  known[ARGV[i]] = true
  served[ARGV[i]] = i < 4 + tonumber(ARGV[3])
end
local function see(id, isInFront)
  local data, submitted = unpack(redis.call('HMGET', prefix .. id, 'data', 'timestamp'))
  local tenant = string.match(data or '', '"tenant":"([^"]+)"')
  if not tenant or served[tenant] or redis.call('HEXISTS', apiKeys .. tenant, PAUSED) == 1 then return end
  if not known[tenant] then return {id, tenant, submitted, isInFront} end
  first = first or {id, tenant, submitted, isInFront}
end
local prioritized = redis.call('ZRANGE', KEYS[1], 0, LOOKED_FOR_AMONG - 1)
local inFront = redis.call('LRANGE', KEYS[2], -LOOKED_FOR_AMONG, -1)
for key, range in ipairs({prioritized, inFront}) do
  for _, id in ipairs(range) do
    local newcomer = see(id, key - 1)
    if newcomer then return newcomer end
  end
end
return first
