import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestRedis, type TestRedis } from '../redis-server.ts';
import { type Answer, API_KEY, makeFolder, startTestGateway, type TestGateway } from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path, trustProxy: 1 });
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const from = (
  address: string,
  headers: Record<string, string>,
  path = '/instance/fetchInstances',
): Promise<Answer> => gateway.call('GET', path, undefined, { 'X-Forwarded-For': address, ...headers });

it('after 60 wrong keys within a minute an address is not listened to any more; others are', async () => {
  const guesses = await Promise.all(
    Array.from({ length: 20 }, (_, index) => from('203.0.113.7', { apikey: `guess-${index}` })),
  );
  guesses.push(
    ...(await Promise.all(
      Array.from({ length: 20 }, () => from('203.0.113.7', { apikey: 'x' }, '/inbox/api/instances')),
    )),
    ...(await Promise.all(
      Array.from({ length: 20 }, () =>
        from('203.0.113.7', { apikey: '', authorization: 'Bearer x' }, '/inbox/api/instances'),
      ),
    )),
  );
  expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([401]));
  for (const key of ['guess-61', API_KEY]) {
    const refused = await from('203.0.113.7', { apikey: key });
    expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  expect((await from('203.0.113.8', { apikey: API_KEY })).status).toBe(200);
  const code = await gateway.call(
    'POST',
    '/inbox/api/session',
    { code: 'x' },
    { 'X-Forwarded-For': '203.0.113.7' },
  );
  expect(code.status).toBe(429);
});

it('requests without any key, and right keys, count for nothing', async () => {
  for (let count = 0; count < 65; count++) {
    expect((await from('203.0.113.9', { apikey: '' })).status).toBe(401);
    expect((await from('203.0.113.9', { apikey: API_KEY })).status).toBe(200);
  }
});
