import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis } from 'soundpost-kit/redis/connection';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { apiKeyKey } from '../../src/jobs/tenants/api-keys.ts';
import { useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

/** Nobody works here, so a job stays as it is. */
const service = useService({ parts: [] });

it('a quiet stream carries a comment each 15 s', async () => {
  const source = { type: 'url', url: `http://127.0.0.1:${service().outside.port}/a.mp4` };
  const jobId = await service().submit({ source, output: { format: 'mp3' } });
  const stream = await Stream.open(jobId, service());
  await until('the first comment', () => stream.comments > 0);
  expect(stream.events.map(({ data }) => data.status)).toEqual(['queued']);
  stream.close();
});

it('a stream ends with the day of a secret that was replaced', async () => {
  const { url, redis } = service();
  const key = await service().newKey();
  const id = key.split('_')[1] ?? '';
  expect((await service().call('POST', `/v1/keys/${id}/rotate`, { key })).status).toBe(200);
  const stream = await Stream.ofKey({ url, key });
  const connection = connectRedis({ url: redis.url, role: 'request', logger: createLogger('silent') });
  const replaced = (await connection.hget(apiKeyKey(id), 'replaced')) ?? '';
  await connection.hset(apiKeyKey(id), 'replaced', replaced.replace(/:\d+$/, `:${Date.now() - 1000}`));
  await closeRedis(connection);
  await stream.ended;
  expect((await service().call('GET', '/v1/jobs', { key })).status).toBe(401);
});
