/** What time it is by Redis, whatever this process's own clock says. */

import { Probes } from 'soundpost-kit/observe/probes';
import { clockProbe, RedisClock } from 'soundpost-kit/redis/clock';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { logger } from '../jobs/queue-fixture.ts';

const HOUR = 60 * 60 * 1000;

let server: TestRedis;
let redis: Redis;
let clock: RedisClock;
let probes: Probes;
let told: string[];
beforeEach(async () => {
  server = await startTestRedis();
  redis = connectRedis({ url: server.url, role: 'worker', logger });
  clock = new RedisClock();
  told = [];
  probes = new Probes(logger);
  probes.add('clock', clockProbe(redis, clock));
  probes.on('changed', () => told.push(probes.state('clock')));
});
afterEach(async () => {
  vi.useRealTimers();
  await probes.close('clock');
  await closeRedis(redis);
  await server.close();
});

function setOwnClock(byMs: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + byMs });
}

/** Looks until Redis has told its time: what is told late, by a machine that is busy, is not taken. */
async function look(): Promise<void> {
  const set = vi.spyOn(clock, 'set');
  await until('its time is taken', async () => {
    await probes.ask('clock');
    return set.mock.calls.length > 0;
  });
  set.mockRestore();
}

const redisMs = async (): Promise<number> => {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
};

/** Asked before and after, since an answer may take its time. */
async function expectRedisTime(): Promise<void> {
  const before = await redisMs();
  const now = clock.now();
  expect(now).toBeGreaterThan(before - 2000);
  expect(now).toBeLessThan((await redisMs()) + 2000);
}

it.each([25, -1])('is kept by a process whose clock is set %i h further', async (hours) => {
  await look();
  expect(clock.isRight).toBe(true);
  setOwnClock(hours * HOUR);
  // Seen at once, and told with the next look.
  expect(clock.isRight).toBe(false);
  await expectRedisTime();
  await look();
  await expectRedisTime();
  expect(clock.aheadMs / HOUR).toBeCloseTo(hours, 2);
  vi.useRealTimers();
  await look();
  expect(clock.isRight).toBe(true);
  expect(told).toEqual(['wrong', 'right']);
});

it('is the own time before Redis has told', () => {
  setOwnClock(HOUR);
  expect(clock.now()).toBe(Date.now());
  expect(clock.isRight).toBe(true);
});

it('is the process’s own again when nobody asks Redis any more', async () => {
  await look();
  await probes.close('clock');
  setOwnClock(HOUR);
  expect(clock.now()).toBe(Date.now());
  expect(clock.isRight).toBe(true);
});

// Without LONGEST_ANSWER_MS in packages/kit/src/redis/clock.ts the time jumps by half of what the answer took.
it('is not taken from an answer that was late', async () => {
  await look();
  // From now on it looks only when it is told to.
  await probes.close('clock');
  const set = vi.spyOn(clock, 'set');
  vi.useFakeTimers({ toFake: ['performance'] });
  const looking = probes.ask('clock');
  vi.advanceTimersByTime(1500);
  await looking;
  expect(set).not.toHaveBeenCalled();
  await probes.ask('clock');
  expect(set).toHaveBeenCalledOnce();
});

it('goes on while Redis is away', async () => {
  await look();
  redis.disconnect();
  await probes.ask('clock');
  setOwnClock(HOUR);
  expect(clock.aheadMs).toBeGreaterThan(HOUR - 60_000);
  expect(told).toEqual([]);
});
