/**
 * Who has what, in Redis: the replicas of the gateway that live, each by a lease of its own, and what each of them has: an
 * instance, or a duty. What a replica has ends with its lease, so that renewing is one command however much it has (as keys
 * hang on a lease in etcd, and on a session in Consul). All times are those of Redis' clock.
 */
import { z } from 'zod';
import type { Redis } from '../../queue/redis.ts';
import { RedisScript } from '../../queue/script.ts';
import { INSTANCE_RECORDS } from '../instances.ts';
import { gatewayKey } from '../redis-keys.ts';

/** Ids of replicas by the end of their lease, ms. */
export const REPLICAS = gatewayKey('replicas');
/** Where each of them is: JSON by id. */
const PLACES = gatewayKey('replica-places');
/** `<fencing token> <replica id>` by instance id or duty. */
export const OWNERS = gatewayKey('owners');
const TOKENS = gatewayKey('owner-tokens');

/** Lua: ms since 1970 by Redis' clock. */
export const NOW = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

const keepScript = new RedisScript(`${NOW}
local replicas, places, owners, instances = unpack(KEYS)
local id, leaseMs, place, previous = unpack(ARGV)
local at = now()
local expires = redis.call('ZSCORE', replicas, id)
if place == '' then
  if not expires or tonumber(expires) <= at then return {0} end
else
  redis.call('ZREM', replicas, previous)
  redis.call('HDEL', places, previous)
  redis.call('HSET', places, id, place)
end
redis.call('ZADD', replicas, at + leaseMs, id)
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', replicas, '-inf', at)) do
  redis.call('ZREM', replicas, dead)
  redis.call('HDEL', places, dead)
end
local living, whereabouts = {}, {}
for _, replica in ipairs(redis.call('ZRANGE', replicas, 0, -1)) do
  living[replica] = true
  local place = redis.call('HGET', places, replica)
  if place then whereabouts[#whereabouts + 1] = place end
end
local exists, count = {}, 0
for _, instance in ipairs(redis.call('HKEYS', instances)) do
  exists[instance] = true
  count = count + 1
end
for index = 5, #ARGV do exists[ARGV[index]] = true end
local owned, own = {}, {}
local held = redis.call('HGETALL', owners)
for index = 1, #held, 2 do
  local what, holder = held[index], held[index + 1]
  local replica = string.match(holder, ' (.+)$')
  -- Of another replica's it is not known here: a newer version may have duties that this one has not.
  if living[replica] and (replica ~= id or exists[what]) then
    owned[what] = true
    if replica == id then own[#own + 1] = {what, holder} end
  else
    redis.call('HDEL', owners, what)
  end
end
local free = {}
for what in pairs(exists) do
  if not owned[what] then free[#free + 1] = what end
end
return {1, whereabouts, own, free, count}
`);

/** The token grows with each change of hands, whatever changes hands. */
const takeScript = new RedisScript(`${NOW}
local replicas, owners, tokens, instances = unpack(KEYS)
local id, what, isDuty = unpack(ARGV)
local at = now()
local function lives(replica)
  local expires = redis.call('ZSCORE', replicas, replica)
  return expires and tonumber(expires) > at
end
if not lives(id) then return '' end
if isDuty == '0' and redis.call('HEXISTS', instances, what) == 0 then return '' end
local holder = redis.call('HGET', owners, what)
local replica = holder and string.match(holder, ' (.+)$')
if replica == id then return holder end
if replica and lives(replica) then return '' end
holder = redis.call('INCR', tokens) .. ' ' .. id
redis.call('HSET', owners, what, holder)
return holder
`);

const locateScript = new RedisScript(`${NOW}
local replicas, owners, places = unpack(KEYS)
local holder = redis.call('HGET', owners, ARGV[1])
if not holder then return {} end
local replica = string.match(holder, ' (.+)$')
local expires = redis.call('ZSCORE', replicas, replica)
local place = redis.call('HGET', places, replica)
if not expires or not place or tonumber(expires) <= now() then return {} end
return {holder, place}
`);

const releaseScript = new RedisScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1
`);

const Place = z.object({
  /** Of the replica; a new one each time that it begins anew. */
  id: z.string(),
  /** Where other replicas reach it, without a slash at the end. */
  url: z.string(),
  /** See home.ts. */
  home: z.string(),
});
export type Place = z.infer<typeof Place>;

const asPlace = z.string().transform((text) => Place.parse(JSON.parse(text)));
const Kept = z.union([
  z.tuple([z.literal(0)]),
  z.tuple([
    z.literal(1),
    z.array(asPlace),
    z.array(z.tuple([z.string(), z.string()])),
    z.array(z.string()),
    z.int(),
  ]),
]);
const Located = z.union([z.tuple([]), z.tuple([z.string(), asPlace])]);

export interface Overview {
  /** Every replica that lives, this one among them. */
  readonly living: readonly Place[];
  /** What this one has: holder by instance or duty. */
  readonly own: ReadonlyMap<string, string>;
  /** Instances and duties that nobody has. */
  readonly free: readonly string[];
  /** How many instances there are. */
  readonly instances: number;
}

export class Ownership {
  readonly #redis: Redis;
  readonly #duties: readonly string[];

  /** @param duties what one replica at a time does, besides instances */
  constructor(redis: Redis, duties: readonly string[]) {
    this.#redis = redis;
    this.#duties = duties;
  }

  /** Begins a lease. @param previous id under which this process had one before */
  async begin(place: Place, leaseMs: number, previous: string): Promise<Overview> {
    const begun = await this.#keep(place.id, leaseMs, JSON.stringify(place), previous);
    if (begun === undefined) {
      throw new Error('a new lease was refused');
    }
    return begun;
  }

  /** Renews a lease. Undefined when it has run out: what the replica had may be another's by now. */
  renew(id: string, leaseMs: number): Promise<Overview | undefined> {
    return this.#keep(id, leaseMs, '', '');
  }

  /** Answers the holder, or undefined when another has it, or it is gone. */
  async take(id: string, what: string): Promise<string | undefined> {
    const isDuty = this.#duties.includes(what) ? 1 : 0;
    const keys = [REPLICAS, OWNERS, TOKENS, INSTANCE_RECORDS];
    const holder = z.string().parse(await takeScript.run(this.#redis, keys, [id, what, isDuty]));
    return holder === '' ? undefined : holder;
  }

  /** Who has it; undefined when nobody who lives does. */
  async locate(what: string): Promise<{ holder: string; place: Place } | undefined> {
    const found = Located.parse(await locateScript.run(this.#redis, [REPLICAS, OWNERS, PLACES], [what]));
    const [holder, place] = found;
    return holder === undefined || place === undefined ? undefined : { holder, place };
  }

  async release(what: string, holder: string): Promise<void> {
    await releaseScript.run(this.#redis, [OWNERS], [what, holder]);
  }

  /** Ends a lease: whatever the replica had is free. */
  async end(id: string): Promise<void> {
    await this.#redis.multi().zrem(REPLICAS, id).hdel(PLACES, id).exec();
  }

  async #keep(id: string, leaseMs: number, place: string, previous: string): Promise<Overview | undefined> {
    const keys = [REPLICAS, PLACES, OWNERS, INSTANCE_RECORDS];
    const args = [id, leaseMs, place, previous, ...this.#duties];
    const kept = Kept.parse(await keepScript.run(this.#redis, keys, args));
    if (kept[0] === 0) {
      return undefined;
    }
    const [, living, own, free, instances] = kept;
    return { living, own: new Map(own), free, instances };
  }
}
