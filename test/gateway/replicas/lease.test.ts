/** Leases of replicas on a real Redis: who has what, for how long, and what is refused to those who have it no more. */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { INSTANCE_RECORDS } from '../../../src/gateway/instances.ts';
import { FencedScript } from '../../../src/gateway/replicas/fenced-script.ts';
import { Hold } from '../../../src/gateway/replicas/hold.ts';
import { OWNERS, Ownership, REPLICAS } from '../../../src/gateway/replicas/ownership.ts';
import { Placement } from '../../../src/gateway/replicas/placement.ts';
import { createLogger } from '../../../src/logger.ts';
import { startTestRedis, type TestRedis } from '../../redis-server.ts';
import { until } from '../../until.ts';

/** So long that a busy machine neither outlasts a lease unawares nor the margin. */
const timing = { leaseMs: 8000, lookMs: 50, marginMs: 4000 };
const DUTY = 'a-duty';

let server: TestRedis;
let redis: Redis;
const placements: Placement[] = [];

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.socketPath);
});
beforeEach(() => redis.flushall());
afterEach(() => Promise.all(placements.splice(0).map((placement) => placement.close())));
afterAll(async () => {
  redis.disconnect();
  await server.close();
});

const ownership = (): Ownership => new Ownership(redis, [DUTY]);

async function addInstances(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  for (const id of ids) await redis.hset(INSTANCE_RECORDS, id, '{}');
  return ids;
}

interface Started {
  readonly placement: Placement;
  /** What it was told to have, and to have no more. */
  readonly has: Set<string>;
}

async function startPlacement(home = randomUUID()): Promise<Started> {
  const has = new Set<string>();
  const placement = new Placement({
    ownership: ownership(),
    duties: [DUTY],
    home,
    timing,
    logger: createLogger('silent'),
  });
  placements.push(placement);
  await placement.start('http://127.0.0.1:1', {
    taken: ({ what }) => void has.add(what),
    lost: ({ what }) => void has.delete(what),
  });
  return { placement, has };
}

/** By Redis' clock, as all leases are. */
const nowMs = async (): Promise<number> => {
  const [seconds = 0, microseconds = 0] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
};

const replica = async (leaseMs: number): Promise<string> => {
  const id = randomUUID();
  await ownership().begin({ id, url: '', home: '' }, leaseMs, '');
  return id;
};

it('an instance is one replica’s until its lease is over, and each change of hands has a greater token', async () => {
  const [instance = ''] = await addInstances(1);
  const [one, other] = [await replica(60_000), await replica(60_000)];
  const first = await ownership().take(one, instance);
  expect(await ownership().take(one, instance)).toBe(first);
  expect(await ownership().take(other, instance)).toBeUndefined();
  await ownership().renew(one, 1);
  const second = await until('the lease to be over', () => ownership().take(other, instance));
  expect(await ownership().take(one, instance)).toBeUndefined();
  expect(await ownership().renew(one, 60_000)).toBeUndefined();
  const token = (holder?: string): number => Number(holder?.split(' ')[0]);
  expect(token(second)).toBeGreaterThan(token(first));
  expect((await ownership().locate(instance))?.place.id).toBe(other);
});

it('nobody takes what does not exist', async () => {
  expect(await ownership().take(await replica(60_000), randomUUID())).toBeUndefined();
});

// Broken by hand (src/gateway/replicas/fenced-script.ts): without the look at the owner, or at the lease.
it('a write is refused as soon as the lease is over, also while nobody else has the instance', async () => {
  const [instance = ''] = await addInstances(1);
  const script = new FencedScript(`return redis.call('SET', KEYS[1], ARGV[1])`);
  const one = await replica(60_000);
  const hold = new Hold({
    what: instance,
    holder: (await ownership().take(one, instance)) ?? '',
    // A process whose clock stood still.
    isValid: () => true,
  });
  await script.run(redis, hold, ['written'], ['in time']);
  await ownership().renew(one, 1);
  await until(
    'the lease to be over',
    async () => Number(await redis.zscore(REPLICAS, one)) < (await nowMs()),
  );
  await expect(script.run(redis, hold, ['written'], ['too late'])).rejects.toMatchObject({
    code: 'service_unavailable',
  });
  expect(await redis.get('written')).toBe('in time');
  expect([hold.isGood, hold.lost.aborted]).toEqual([false, true]);

  const [other, taker] = [await replica(60_000), await replica(60_000)];
  const holder = (await ownership().take(other, instance)) ?? '';
  const stale = new Hold({ what: instance, holder, isValid: () => true });
  await redis.hset(OWNERS, instance, `999 ${taker}`);
  await expect(script.run(redis, stale, ['written'], ['by another'])).rejects.toMatchObject({
    code: 'service_unavailable',
  });
  expect(await redis.get('written')).toBe('in time');
});

it('instances are shared out evenly, and those of a replica that ends go to the others', async () => {
  const ids = await addInstances(6);
  // Before there is anybody to share with, one has them all.
  const first = await startPlacement();
  expect(first.has.size).toBe(6);
  const [second, third] = [await startPlacement(), await startPlacement()];
  await first.placement.close();
  await until('all to be taken', () => second.has.size + third.has.size === 6);
  expect([second.has.size, third.has.size]).toEqual([3, 3]);
  expect([...second.has, ...third.has].toSorted()).toEqual(ids.toSorted());
});

it('a duty is done by one at a time', async () => {
  const first = await startPlacement();
  const second = await startPlacement();
  const signal = AbortSignal.timeout(10_000);
  await first.placement.onDuty(DUTY, signal);
  let isSecond = false;
  const waiting = second.placement.onDuty(DUTY, signal).then(() => {
    isSecond = true;
  });
  await wait(200);
  expect(isSecond).toBe(false);
  await first.placement.close();
  await waiting;
});

// Broken by hand (src/gateway/replicas/placement.ts): without the margin. (That it counts from the question on is not told apart here.)
it('a replica that cannot renew its lease has let go before Redis gives it away', async () => {
  const [instance = ''] = await addInstances(1);
  const { placement, has } = await startPlacement();
  const renewedAt = performance.now();
  process.kill(server.pid, 'SIGSTOP');
  try {
    await until('it to let go', () => !has.has(instance));
    expect(performance.now() - renewedAt).toBeLessThan(timing.leaseMs - timing.marginMs / 2);
    expect(placement.holdOf(instance)).toBeUndefined();
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
  await until('it to have it again', () => placement.holdOf(instance));
});

it('a Redis that fell back to an older copy of itself is believed within a look', async () => {
  const [instance = ''] = await addInstances(1);
  const { placement, has } = await startPlacement();
  await redis.hset(OWNERS, instance, `999 ${await replica(60_000)}`);
  await until('it to let go', () => !has.has(instance));
  expect(placement.holdOf(instance)).toBeUndefined();
});

it('what was taken although the answer was lost is noticed', async () => {
  const { has } = await startPlacement();
  const [instance = ''] = await addInstances(1);
  await until('it to be taken', () => has.has(instance));
  const holder = (await redis.hget(OWNERS, instance)) ?? '';
  const another = randomUUID();
  await redis.multi().hset(INSTANCE_RECORDS, another, '{}').hset(OWNERS, another, holder).exec();
  await until('the other one, too', () => has.has(another));
});

it('one that is deleted is given back, and not taken again', async () => {
  const [instance = ''] = await addInstances(1);
  const { placement } = await startPlacement();
  await redis.hdel(INSTANCE_RECORDS, instance);
  await placement.release(instance);
  await wait(150);
  expect(placement.holdOf(instance)).toBeUndefined();
  expect(await redis.hget(OWNERS, instance)).toBeNull();
});

// Broken by hand (src/gateway/replicas/ownership.ts): whatever has a living owner is kept. It stayed owned for ever.
it('one whose record is gone has no owner, also when the process that deleted it died before giving it back', async () => {
  const [instance = '', kept = ''] = await addInstances(2);
  const { placement, has } = await startPlacement();
  await redis.hdel(INSTANCE_RECORDS, instance);
  await until('it to be let go', () => !has.has(instance));
  expect(await redis.hget(OWNERS, instance)).toBeNull();
  expect(placement.holdOf(kept)).toBeDefined();
  expect(placement.holdOf(DUTY)).toBeDefined();
});

it('a duty that only a newer version knows stays whose it is', async () => {
  await startPlacement();
  const newer = new Ownership(redis, [DUTY, 'a-newer-duty']);
  const id = await replica(60_000);
  const holder = (await newer.take(id, 'a-newer-duty')) ?? '';
  expect(holder).not.toBe('');
  const [instance = ''] = await addInstances(1);
  await until('a look of the older one', () => redis.hexists(OWNERS, instance).then((found) => found === 1));
  expect(await redis.hget(OWNERS, 'a-newer-duty')).toBe(holder);
});
