/** A process that alone has lost Redis is told from a Redis that is away for everybody. */

import { Probes } from 'soundpost-kit/observe/probes';
import { closeRedis, connectRedis, linkProbe, type Redis } from 'soundpost-kit/redis/connection';
import { recordConnects } from 'soundpost-testing/connect-recorder';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { logger } from '../jobs/queue-fixture.ts';

let server: TestRedis;
let redis: Redis;
let probes: Probes;
beforeEach(async () => {
  server = await startTestRedis();
  redis = connectRedis({ url: server.url, role: 'request', logger });
  probes = new Probes(logger);
  probes.add('link', { ...linkProbe(redis), everyMs: 50 });
  void probes.ask('link');
});
afterEach(async () => {
  await probes.close('link');
  await closeRedis(redis);
  await server.close();
});

it('is cut off when its connection has ended while Redis answers, until it is there again', async () => {
  await redis.ping();
  redis.disconnect();
  const fresh = vi.spyOn(redis, 'duplicate');
  await until('it is cut off', () => probes.isFailing('link'));
  // After a few looks in a row, 5 s apart.
  expect(fresh.mock.calls.length).toBeLessThan(10);
  await redis.connect();
  await until('it is not any more', () => !probes.isFailing('link'));
});

// Fails when packages/kit/src/redis/connection.ts does not ask anew.
it('is not cut off by a Redis that hangs', async () => {
  const fresh = vi.spyOn(redis, 'duplicate');
  process.kill(server.pid, 'SIGSTOP');
  await until('it has looked four times', () => fresh.mock.calls.length >= 4);
  expect(probes.isFailing('link')).toBe(false);
  process.kill(server.pid, 'SIGCONT');
});

it('is not cut off by a Redis that is gone', async () => {
  await redis.ping();
  const fresh = vi.spyOn(redis, 'duplicate');
  await server.close();
  await until('it has looked four times', () => fresh.mock.calls.length >= 4);
  expect(probes.isFailing('link')).toBe(false);
});

it('opens no connection once it is closed, also in the middle of a look', async () => {
  await redis.ping();
  const fresh = vi.spyOn(redis, 'duplicate');
  await server.close();
  await until('it has opened one', () => fresh.mock.calls.length > 0);
  await probes.close('link');
  await closeRedis(redis);
  const connects = recordConnects();
  await probes.ask('link');
  connects.stop();
  expect(connects.attempts).toEqual([]);
});
