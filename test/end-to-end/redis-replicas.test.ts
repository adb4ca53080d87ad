/** REDIS_WAIT_REPLICAS as a client of the API meets it: no 202 that one server alone knows of, and no second job for who asks again. */
import { randomUUID } from 'node:crypto';
import { bestMs, msOf } from 'soundpost-testing/best-ms';
import type { Json } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { freePorts } from 'soundpost-testing/ports';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';

let port = 0;
const servers: TestRedis[] = [];
let home: ServiceHome;
let api = '';

beforeAll(async () => {
  [port = 0] = await freePorts(1);
  servers.push(await startTestRedis(['--port', String(port), '--repl-diskless-sync-delay', '0']));
  home = await ServiceHome.make({
    REDIS_URL: `redis://127.0.0.1:${port}`,
    REDIS_WAIT_REPLICAS: '1',
    SECRET_KEY: 'a secret of 32 bytes or more, as every process has it',
    OUTBOUND_ALLOW: '127.0.0.1:9',
  });
  api = await home.start('api').says(/^API\s+(http\S+)/m);
});
afterAll(async () => {
  await home?.remove();
  for (const server of servers.reverse()) await server.close();
});

async function post(
  path: string,
  body: object,
  idempotencyKey: string,
): Promise<{ status: number; body: Json }> {
  const response = await fetch(`${api}${path}`, {
    method: 'POST',
    headers: {
      'X-API-Key': home.key,
      'Content-Type': 'application/json',
      'Idempotency-Key': idempotencyKey,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

async function jobs(): Promise<Json[]> {
  const response = await fetch(`${api}/v1/jobs`, { headers: { 'X-API-Key': home.key } });
  return ((await response.json()) as Json).data.jobs;
}

it('a job and a batch are accepted once a replica has them; until then 503, and the same jobs when asked again', async () => {
  const job = { source: { type: 'url', url: 'http://127.0.0.1:9/talk.mp4' }, output: { format: 'mp3' } };
  const requests = [
    { path: '/v1/extract', body: job, key: randomUUID() },
    { path: '/v1/batch', body: { jobs: [job, job] }, key: randomUUID() },
  ];
  for (const { path, body, key } of requests) {
    const refused = async (): Promise<void> => {
      const answer = await post(path, body, key);
      expect(answer.status).toBe(503);
      expect(answer.body.error).toMatchObject({
        code: 'SERVICE_UNAVAILABLE',
        message: expect.stringContaining('Idempotency-Key'),
      });
    };
    expect(await bestMs(2000, () => msOf(refused))).toBeLessThan(2000);
  }
  servers.push(await startTestRedis(['--replicaof', `127.0.0.1 ${port}`]));
  const accepted: string[] = [];
  for (const { path, body, key } of requests) {
    const { data } = await until('it is accepted', async () => {
      const answer = await post(path, body, key);
      return answer.status === 202 && answer.body;
    });
    accepted.push(...(data.jobs?.map(({ jobId }: Json) => jobId) ?? [data.jobId]));
  }
  expect((await jobs()).map(({ jobId }) => jobId).sort()).toEqual(accepted.sort());
  expect(accepted).toHaveLength(3);
});
