/**
 * Events on their way to the webhooks of instances. One that is due is leased to a process; a process that dies loses it to
 * the others when the lease has run out. Each carries its own schedule, so that one receiver that is down holds up no other.
 */
import { z } from 'zod';
import type { Redis } from '../../queue/redis.ts';
import { RedisScript } from '../../queue/script.ts';
import { gatewayKey } from '../redis-keys.ts';

const Delivery = z.object({
  /** The event's place in the stream: `<ms>-<counter>`, also what orders deliveries of an instance. */
  eventId: z.string(),
  instanceId: z.string(),
  envelope: z.string(),
  happenedAtMs: z.int(),
  /** Attempts made. */
  attempts: z.int(),
});
export type Delivery = z.infer<typeof Delivery>;

const DUE = gatewayKey('webhook-due');
const RECORDS = gatewayKey('webhook-deliveries');
/** Longer than an attempt may take. */
const LEASE_MS = 30_000;

const addScript = new RedisScript(`
if redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 1 then redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end
return 1
`);

/** The ones that are due, each put off by a lease. */
const leaseScript = new RedisScript(`
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
local found = {}
for _, id in ipairs(ids) do
  local record = redis.call('HGET', KEYS[2], id)
  if record then
    redis.call('ZADD', KEYS[1], ARGV[2], id)
    found[#found + 1] = record
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
local next = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {next[2] or '', found}
`);

const Leased = z.tuple([z.string(), z.array(z.string())]);

export class Deliveries {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Adding an event a second time changes nothing. */
  async add(delivery: Delivery): Promise<void> {
    const stored = JSON.stringify(delivery);
    await addScript.run(this.#redis, [DUE, RECORDS], [idOf(delivery), stored, delivery.happenedAtMs]);
  }

  /** Those that are due, in the order of their events, and when the next one will be. */
  async lease(limit: number): Promise<{ due: Delivery[]; nextAtMs: number | undefined }> {
    const now = Date.now();
    const [next, records] = Leased.parse(
      await leaseScript.run(this.#redis, [DUE, RECORDS], [now, now + LEASE_MS, limit]),
    );
    const due = records.map((record) => Delivery.parse(JSON.parse(record)));
    return { due: due.toSorted(byEvent), nextAtMs: next === '' ? undefined : Number(next) };
  }

  async finish(delivery: Delivery): Promise<void> {
    const id = idOf(delivery);
    await this.#redis.multi().zrem(DUE, id).hdel(RECORDS, id).exec();
  }

  async postpone(delivery: Delivery, untilMs: number): Promise<void> {
    const id = idOf(delivery);
    const stored = JSON.stringify({ ...delivery, attempts: delivery.attempts + 1 });
    await this.#redis.multi().hset(RECORDS, id, stored).zadd(DUE, untilMs, id).exec();
  }
}

const idOf = ({ instanceId, eventId }: Delivery): string => `${instanceId} ${eventId}`;

function byEvent(one: Delivery, other: Delivery): number {
  const [oneMs = 0, oneCount = 0] = one.eventId.split('-').map(Number);
  const [otherMs = 0, otherCount = 0] = other.eventId.split('-').map(Number);
  return oneMs - otherMs || oneCount - otherCount;
}
