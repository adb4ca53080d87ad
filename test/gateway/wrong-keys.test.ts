import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
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

it('after 30 wrong keys within a minute from an address further ones are refused with 429, and right ones answered', async () => {
  const guesses = await Promise.all([
    ...Array.from({ length: 25 }, (_, index) => from('203.0.113.7', { apikey: `guess-${index}` })),
    ...Array.from({ length: 10 }, () => from('203.0.113.7', { apikey: 'x' }, '/inbox/api/instances')),
    ...Array.from({ length: 10 }, () =>
      from('203.0.113.7', { apikey: '', authorization: 'Bearer x' }, '/inbox/api/instances'),
    ),
  ]);
  const answered = (wanted: number): Answer[] => guesses.filter(({ status }) => status === wanted);
  // Although all came at once.
  expect([answered(401).length, answered(429).length]).toEqual([30, 15]);
  const [refused] = answered(429);
  expect(refused?.body.code).toBe('rate_limited');
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await from('203.0.113.7', { apikey: API_KEY })).status).toBe(200);
  expect((await from('203.0.113.8', { apikey: 'guess' })).status).toBe(401);
  const code = await gateway.call(
    'POST',
    '/inbox/api/session',
    { code: 'x' },
    { 'X-Forwarded-For': '203.0.113.7' },
  );
  expect(code.status).toBe(429);
});

it('requests without any key, and right keys, count for nothing', async () => {
  for (let count = 0; count < 31; count++) {
    expect((await from('203.0.113.9', { apikey: '' })).status).toBe(401);
    expect((await from('203.0.113.9', { apikey: API_KEY })).status).toBe(200);
  }
});
