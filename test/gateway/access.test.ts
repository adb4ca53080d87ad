import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestRedis, type TestRedis } from '../redis-server.ts';
import { type Answer, API_KEY, makeFolder, startTestGateway, type TestGateway } from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
const tokens = { alpha: '', beta: '' };
const ids = { alpha: '', beta: '' };

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  for (const name of ['alpha', 'beta'] as const) {
    const { body } = await gateway.call('POST', '/instance/create', { instanceName: name });
    tokens[name] = body.hash;
    ids[name] = body.instance.instanceId;
  }
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

/** Every route that belongs to an instance. */
const instanceRoutes = [
  'POST /message/sendMessengerAudio/',
  'POST /message/sendWhatsAppAudio/',
  'POST /settings/set/',
  'POST /chat/updateMessage/',
  'POST /group/sendInvite/',
  'POST /chat/sendPresence/',
  'POST /message/updateBlockStatus/',
  'POST /chat/updateBlockStatus/',
  'POST /chat/findContacts/',
  'POST /chat/findChats/',
  'GET /group/inviteCode/',
  'GET /group/participants/',
  'GET /chat/fetchPrivacySettings/',
  'GET /instance/connectionState/',
];
const managementRoutes = [
  'POST /instance/create',
  'GET /instance/fetchInstances',
  'DELETE /instance/delete/alpha',
];

const ask = (route: string, path: string, apikey: string): Promise<Answer> =>
  gateway.call(route.split(' ')[0] ?? '', (route.split(' ')[1] ?? '') + path, undefined, { apikey });

/** What may differ between two refusals. */
const comparable = ({ status, headers, body }: Answer): unknown => ({
  status,
  body: { ...body, requestId: '' },
  headers: [...headers.keys()].filter((name) => name !== 'date').toSorted(),
});

describe.for(instanceRoutes)('%s{instance}', (route) => {
  it('opens to the gateway key and to the instance’s own token, by name and by id', async () => {
    for (const key of [API_KEY, tokens.alpha]) {
      for (const path of ['alpha', ids.alpha]) {
        expect((await ask(route, path, key)).status).not.toBe(401);
      }
    }
  });

  it('refuses everybody else in the same way, whether the instance exists or not', async () => {
    const refusals = await Promise.all([
      ask(route, 'beta', tokens.alpha),
      ask(route, ids.beta, tokens.alpha),
      ask(route, 'nobody', tokens.alpha),
      ask(route, 'alpha', 'wrong-key-wrong-key'),
      ask(route, 'nobody', 'wrong-key-wrong-key'),
      ask(route, 'alpha', ''),
      ask(route, 'nobody', ''),
    ]);
    expect(refusals[0]?.status).toBe(401);
    for (const refusal of refusals) {
      expect(comparable(refusal)).toEqual(comparable(refusals[0] as Answer));
    }
  });
});

describe.for(managementRoutes)('%s', (route) => {
  it('is for the gateway key alone', async () => {
    for (const key of ['', 'wrong', tokens.alpha, tokens.beta]) {
      expect((await ask(route, '', key)).status).toBe(401);
    }
  });
});

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
  const chats = (instance: string): string => `/inbox/api/instances/${instance}/chats`;
  const get = (path: string, headers: Record<string, string>): Promise<Answer> =>
    gateway.call('GET', path, undefined, headers);

  it('needs a key, a token or a session', async () => {
    for (const path of ['/inbox/api/instances', '/inbox/api/events', chats('alpha')]) {
      expect((await get(path, { apikey: '' })).status).toBe(401);
      expect((await get(path, { apikey: 'wrong' })).status).toBe(401);
      expect((await get(path, { apikey: '', authorization: 'Bearer wrong' })).status).toBe(401);
    }
  });

  it('shows a token only its own instance', async () => {
    const { body } = await get('/inbox/api/instances', { apikey: tokens.alpha });
    expect(body.map(({ name }: { name: string }) => name)).toEqual(['alpha']);
    expect((await get(chats('alpha'), { apikey: tokens.alpha })).status).toBe(200);
    const [foreign, unknown] = await Promise.all(
      ['beta', 'nobody'].map((name) => get(chats(name), { apikey: tokens.alpha })),
    );
    expect(comparable(foreign as Answer)).toEqual(comparable(unknown as Answer));
    expect(foreign?.status).toBe(404);
  });

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
