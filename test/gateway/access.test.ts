/** What keys, tokens and codes are; which of them opens which route is in authorisation.test.ts. */
import { Redis } from 'ioredis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, makeFolder, startTestGateway, type TestGateway } from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
const tokens = { alpha: '', beta: '' };

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  for (const name of ['alpha', 'beta'] as const) {
    const { body } = await gateway.call('POST', '/instance/create', { instanceName: name });
    tokens[name] = body.hash;
  }
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const ask = (route: string, path: string, apikey: string): Promise<Answer> =>
  gateway.call(route.split(' ')[0] ?? '', (route.split(' ')[1] ?? '') + path, undefined, { apikey });

it('the key is looked at before path, body and its type', async () => {
  const stranger = { apikey: 'stranger' };
  const asked = [
    gateway.call('POST', '/message/sendMessengerAudio/alpha', '{', {
      ...stranger,
      'Content-Type': 'application/json',
    }),
    gateway.call('POST', '/message/sendMessengerAudio/alpha', 'x', {
      ...stranger,
      'Content-Type': 'text/plain',
    }),
    gateway.call('PATCH', '/message/sendMessengerAudio/alpha', undefined, stranger),
    gateway.call('GET', '/no/such/path', undefined, stranger),
    gateway.call('POST', '/message/sendMessengerAudio/%E0%A4%A', undefined, stranger),
    gateway.call('POST', '/message/sendMessengerAudio/alpha', '{', {
      apikey: tokens.beta,
      'Content-Type': 'application/json',
    }),
  ];
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 401]);
});

it('a token of a deleted instance opens nothing any more', async () => {
  const { body } = await gateway.call('POST', '/instance/create', { instanceName: 'gone' });
  const state = () => ask('GET /instance/connectionState/', 'gone', body.hash);
  expect((await state()).status).toBe(200);
  await gateway.call('DELETE', '/instance/delete/gone');
  expect((await state()).status).toBe(401);
});

it('neither tokens nor one-time codes are stored as they are', async () => {
  const code = new URL(await gateway.inboxLink()).searchParams.get('code') ?? '';
  const client = new Redis(redis.socketPath);
  const dump: string[] = [];
  for (const key of await client.keys('*')) {
    dump.push(key, String(await client.dump(key)), JSON.stringify(await client.hgetall(key).catch(() => '')));
  }
  client.disconnect();
  expect(dump.length).toBeGreaterThan(5);
  for (const secret of [tokens.alpha, tokens.beta, code]) {
    expect(dump.join('\n')).not.toContain(secret);
  }
});

describe('the inbox data', () => {
  const get = (path: string, headers: Record<string, string>): Promise<Answer> =>
    gateway.call('GET', path, undefined, headers);

  it('opens by a one-time link, once, and to the inbox only', async () => {
    const code = new URL(await gateway.inboxLink()).searchParams.get('code');
    const redeem = () => gateway.call('POST', '/inbox/api/session', { code }, { apikey: '' });
    const answers = await Promise.all([redeem(), redeem()]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 401]);
    const { session } = answers.find(({ status }) => status === 201)?.body ?? {};
    const bearer = { apikey: '', authorization: `Bearer ${session}` };
    expect((await get('/inbox/api/instances', bearer)).status).toBe(200);
    expect((await get('/instance/fetchInstances', bearer)).status).toBe(401);
    expect((await get('/instance/connectionState/alpha', { apikey: session })).status).toBe(401);
  });
});

it('the page of the inbox may load nothing but its own files, and runs no inline script', async () => {
  const { status, headers } = await gateway.call('GET', '/inbox', undefined, { apikey: '' });
  const policy = headers.get('content-security-policy');
  expect(status).toBe(200);
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).not.toContain('unsafe');
});
