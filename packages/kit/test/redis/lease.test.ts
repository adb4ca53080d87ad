/** A lease on a real Redis: who holds it, for how long, and who hears of whom. */
import { Redis } from 'ioredis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ownKey } from '../../src/redis/keys.ts';
import { RedisLease } from '../../src/redis/lease.ts';

const leaseMs = 60_000;
const lease = new RedisLease(ownKey, 'test');
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.socketPath);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis.disconnect();
  await server.close();
});

const tokenOf = (holder: string): number => Number(holder.split(' ')[0]);
const taken = async (who?: string): Promise<string> => {
  const { isTaken, holder } = await lease.take(redis, { leaseMs, ...(who === undefined ? {} : { who }) });
  expect(isTaken).toBe(true);
  return holder;
};

it('is one’s until it is over, and each change of hands has a greater token', async () => {
  const first = await taken('one at home');
  expect(first).toMatch(/^\d+ one at home$/);
  expect(await lease.take(redis, { leaseMs })).toEqual({ isTaken: false, holder: first });
  expect(await lease.renew(redis, first, 1)).toBe('held');
  await until('it to be over', async () => (await redis.exists(lease.key)) === 0);
  const second = await taken();
  expect(tokenOf(second)).toBeGreaterThan(tokenOf(first));
  expect(await lease.renew(redis, first, leaseMs)).toBe('lost');
  // Nor can the one before give it back.
  await lease.release(redis, first);
  expect(await redis.get(lease.key)).toBe(second);
  await lease.release(redis, second);
  expect(tokenOf(await taken())).toBeGreaterThan(tokenOf(second));
});

it('taken although the answer was lost, it is taken again, under a new token', async () => {
  const lost = await taken('one');
  expect(tokenOf(await taken('one'))).toBeGreaterThan(tokenOf(lost));
});

it('its holder hears of others only when they ask, and the next one not of those before', async () => {
  const holder = await taken();
  await lease.take(redis, { leaseMs });
  expect(await lease.renew(redis, holder, leaseMs)).toBe('held');
  await lease.take(redis, { leaseMs, asking: true });
  expect(await lease.renew(redis, holder, leaseMs)).toBe('wanted');
  await lease.release(redis, holder);
  expect(await lease.renew(redis, await taken(), leaseMs)).toBe('held');
});
