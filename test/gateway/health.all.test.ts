import { readFile } from 'node:fs/promises';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  API_KEY,
  ada,
  eventually,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;

beforeEach(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({
    redisUrl: redis.url,
    dataDir: folder.path,
    // It shall not stand by meanwhile.
    election: { timing: { leaseMs: 60_000 } },
  });
});

afterEach(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const get = (path: string) => gateway.call('GET', path, undefined, { apikey: '' });

it('a gateway with Redis and storage is live and ready', async () => {
  expect((await get('/health/live')).status).toBe(200);
  expect(await get('/health/ready')).toMatchObject({
    status: 200,
    body: { status: 'ok', redis: 'ok', storage: 'ok' },
  });
});

it('without Redis it lives, is not ready, and answers requests with 503', async () => {
  await redis.close();
  expect((await get('/health/live')).status).toBe(200);
  const ready = await eventually(
    () => get('/health/ready'),
    ({ status }) => status === 503,
  );
  expect(ready.body).toMatchObject({ redis: 'unreachable', storage: 'ok' });
  const answer = await gateway.call('POST', '/message/sendMessengerAudio/main', {
    number: ada.number,
    audio: 'AAAA',
  });
  expect(answer).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
});

it('a gateway that cannot reach Redis does not start', async () => {
  await redis.close();
  await expect(startTestGateway({ redisUrl: redis.url, dataDir: folder.path })).rejects.toThrow();
});

it('a message that waits for its delay is given up with 503 when the gateway stops', async () => {
  await makeTone(`${folder.path}/tone.ogg`, 1);
  const audio = (await readFile(`${folder.path}/tone.ogg`)).toString('base64');
  const waiting = gateway.call('POST', '/message/sendMessengerAudio/main', {
    number: ada.number,
    audio,
    delay: 60_000,
  });
  // The chat shows that something is being recorded once the delay has begun.
  const feed = await fetch(`${gateway.url}/inbox/api/events`, {
    headers: { apikey: API_KEY, 'Last-Event-ID': '0-0' },
  });
  for await (const chunk of feed.body ?? []) {
    if (Buffer.from(chunk).includes('recording')) break;
  }
  await gateway.close();
  expect(await waiting).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
});
