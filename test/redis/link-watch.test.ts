/** A process that alone has lost Redis is told from a Redis that is away for everybody. */

import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { type LinkWatch, watchLink } from 'soundpost-kit/redis/link-watch';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { logger } from '../jobs/queue-fixture.ts';

let server: TestRedis;
let redis: Redis;
let watch: LinkWatch;
beforeEach(async () => {
  server = await startTestRedis();
  redis = connectRedis({ url: server.url, role: 'request', logger });
  watch = watchLink(redis, logger, 50);
});
afterEach(async () => {
  watch.close();
  await closeRedis(redis);
  await server.close();
});

it('is cut off when its connection has ended while Redis answers, until it is there again', async () => {
  await redis.ping();
  redis.disconnect();
  const fresh = vi.spyOn(redis, 'duplicate');
  await until('it is cut off', () => watch.isCutOff);
  // After a few looks in a row, 5 s apart.
  expect(fresh.mock.calls.length).toBeLessThan(10);
  await redis.connect();
  await until('it is not any more', () => !watch.isCutOff);
});

// Fails when packages/kit/src/redis/link-watch.ts does not ask anew.
it('is not cut off by a Redis that hangs', async () => {
  const fresh = vi.spyOn(redis, 'duplicate');
  process.kill(server.pid, 'SIGSTOP');
  await until('it has looked four times', () => fresh.mock.calls.length >= 4);
  expect(watch.isCutOff).toBe(false);
  process.kill(server.pid, 'SIGCONT');
});

it('is not cut off by a Redis that is gone', async () => {
  await redis.ping();
  const fresh = vi.spyOn(redis, 'duplicate');
  await server.close();
  await until('it has looked four times', () => fresh.mock.calls.length >= 4);
  expect(watch.isCutOff).toBe(false);
});
