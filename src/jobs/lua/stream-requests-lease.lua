-- Leases a process a part of what a key may ask of a host: places, and a time to begin requests in.
-- KEYS: lease, hosts
-- ARGV: host, process, busy, wanted, beginsMs, mostPlaces, leaseMs
-- Returns: {places, ms until the time begins}
-- The lease is a hash: `until` is where the time ends that has been given out, every other field a
-- process with its places and when it loses them. Places in use are never taken away.
-- include: now.lua
local lease, hosts = unpack(KEYS)
local host, process, busy, wanted = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local begins, most, leaseMs = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local function ms(number) return string.format('%.0f', number) end
local from, others, processes = now, 0, 1
local fields = redis.call('HGETALL', lease)
for i = 1, #fields, 2 do
  local places, ends = string.match(fields[i + 1], '^(%d+) (%d+)$')
  if fields[i] == 'until' then
    from = math.max(now, tonumber(fields[i + 1]))
  elseif tonumber(ends) <= now then
    redis.call('HDEL', lease, fields[i])
  elseif fields[i] ~= process then
    others, processes = others + tonumber(places), processes + 1
  end
end
if wanted == 0 then
  redis.call('HDEL', lease, process)
  return {0, 0}
end
-- A process that has more than its share returns places as its requests end.
local free = math.max(0, math.min(most - others, math.ceil(most / processes)))
local places = math.max(busy, math.min(wanted, free))
redis.call('HSET', lease, process, places .. ' ' .. ms(now + leaseMs))
if places > busy and begins > 0 then redis.call('HSET', lease, 'until', ms(from + begins)) end
redis.call('PEXPIRE', lease, leaseMs)
redis.call('ZREMRANGEBYSCORE', hosts, '-inf', ms(now - leaseMs))
redis.call('ZADD', hosts, ms(now), host)
redis.call('PEXPIRE', hosts, leaseMs)
return {places, math.ceil(from - now)}
