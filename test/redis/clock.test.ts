/** What time it is by Redis, whatever this process's own clock says. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type ClockWatch, RedisClock, watchClock } from '../../src/redis/clock.ts';
import { closeRedis, connectRedis, type Redis } from '../../src/redis/connection.ts';
import { logger } from '../queue/queue-fixture.ts';
import { startTestRedis, type TestRedis } from '../redis-server.ts';

const HOUR = 60 * 60 * 1000;

let server: TestRedis;
let redis: Redis;
let clock: RedisClock;
let watch: ClockWatch;
let told: string[];
beforeEach(async () => {
  server = await startTestRedis(['--enable-debug-command', 'local']);
  redis = connectRedis({ url: server.url, role: 'worker', logger });
  clock = new RedisClock();
  told = [];
  clock.on('wrong', () => told.push('wrong')).on('right', () => told.push('right'));
  watch = watchClock(redis, logger, clock);
});
afterEach(async () => {
  vi.useRealTimers();
  watch.close();
  await closeRedis(redis);
  await server.close();
});

function setOwnClock(byMs: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + byMs });
}

const redisMs = async (): Promise<number> => {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
};

it.each([25, -1])('is kept by a process whose clock is set %i h further', async (hours) => {
  await watch.look();
  expect(clock.isRight).toBe(true);
  setOwnClock(hours * HOUR);
  // Seen at once, and told with the next look.
  expect(clock.isRight).toBe(false);
  expect(Math.abs(clock.now() - (await redisMs()))).toBeLessThan(2000);
  await watch.look();
  expect(Math.abs(clock.now() - (await redisMs()))).toBeLessThan(2000);
  expect(clock.aheadMs / HOUR).toBeCloseTo(hours, 2);
  vi.useRealTimers();
  await watch.look();
  expect(clock.isRight).toBe(true);
  expect(told).toEqual(['wrong', 'right']);
});

it('is the own time before Redis has told', () => {
  setOwnClock(HOUR);
  expect(clock.now()).toBe(Date.now());
  expect(clock.isRight).toBe(true);
});

// Without LONGEST_ANSWER_MS in src/redis/clock.ts the time jumps by half of what the answer took.
it('is not taken from an answer that was late', async () => {
  await watch.look();
  const set = vi.spyOn(clock, 'set');
  const other = connectRedis({ url: server.url, role: 'worker', logger });
  await other.ping();
  const asleep = other.call('DEBUG', 'SLEEP', '1.5');
  await watch.look();
  await asleep;
  expect(set).not.toHaveBeenCalled();
  await watch.look();
  expect(set).toHaveBeenCalledOnce();
  await closeRedis(other);
});

it('goes on while Redis is away', async () => {
  await watch.look();
  redis.disconnect();
  await watch.look();
  setOwnClock(HOUR);
  expect(clock.aheadMs).toBeGreaterThan(HOUR - 2000);
  expect(told).toEqual([]);
});
