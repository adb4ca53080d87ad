/** How many deliveries of an endpoint are pending, also after a worker died before it could say that one has ended. */
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { countPending, recordKey } from '../../src/jobs/bullmq-internals.ts';

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startTestRedis();
  redis = connectPatiently(server.url);
});
afterAll(async () => {
  await closeRedis(redis);
  await server.close();
});

it('counts those that have not ended, and drops the others', async () => {
  await redis.sadd('{soundpost}:a', 'waits', 'ended', 'gone');
  await redis.hset(recordKey('webhook', 'waits'), { data: '{}' });
  await redis.hset(recordKey('webhook', 'ended'), { data: '{}', finishedOn: '1' });
  expect(await countPending(redis, 'webhook', ['{soundpost}:a', '{soundpost}:none'])).toEqual([1, 0]);
  expect(await redis.smembers('{soundpost}:a')).toEqual(['waits']);
});
