/** GATEWAY_ANSWERS=public: operations whose answer has no body in the interface answer what the public server does (decisions B). */

import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_KEY, ada, makeFolder, startTestGateway, type TestGateway } from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({
    redisUrl: redis.url,
    dataDir: folder.path,
    answersAsPublic: true,
    corsOrigins: [DASHBOARD],
  });
});
afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

/** The public dashboard, a page of another origin. */
const DASHBOARD = 'https://dashboard.example';

describe('the public dashboard', () => {
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${gateway.url}${path}`, { ...init, headers: { Origin: DASHBOARD, ...init.headers } });
  const mayRead = (response: Response): boolean =>
    response.headers.get('access-control-allow-origin') === DASHBOARD;

  it('signs in: it finds the server, has its key verified, and lists the instances', async () => {
    const found = await ask('/');
    expect([found.status, mayRead(found)]).toEqual([200, true]);
    expect(await found.json()).toMatchObject({
      status: 200,
      message: expect.any(String),
      version: expect.stringMatching(/^2\.\d+\.\d+$/),
    });
    const preflight = await ask('/verify-creds', {
      method: 'OPTIONS',
      headers: {
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'apikey,content-type',
      },
    });
    expect([preflight.status, mayRead(preflight)]).toEqual([204, true]);
    const verify = (apikey: string) =>
      ask('/verify-creds', {
        method: 'POST',
        headers: { apikey, 'content-type': 'application/json' },
        body: '{}',
      });
    const verified = await verify(API_KEY);
    expect([verified.status, mayRead(verified)]).toEqual([200, true]);
    expect(await verified.json()).toEqual({ status: 200, message: expect.any(String) });
    const refused = await verify('no-key-of-this-gateway');
    expect([refused.status, mayRead(refused)]).toEqual([401, true]);
    const listed = await ask('/instance/fetchInstances', { headers: { apikey: API_KEY } });
    expect([listed.status, mayRead(listed)]).toEqual([200, true]);
    expect(await listed.json()).toEqual([
      expect.objectContaining({ name: 'main', connectionStatus: 'open', ownerJid: expect.any(String) }),
    ]);
  });

  it('of an origin that is not named learns nothing', async () => {
    const found = await fetch(`${gateway.url}/`, { headers: { Origin: 'https://elsewhere.example' } });
    expect(found.headers.get('access-control-allow-origin')).toBeNull();
  });
});

const call = async (path: string, body: object) => {
  const answer = await gateway.call('POST', `${path}/main`, body);
  return [answer.status, answer.body];
};

it('a presence', async () => {
  expect(await call('/chat/sendPresence', { number: ada.number, presence: 'recording', delay: 10 })).toEqual([
    201,
    { presence: 'recording' },
  ]);
});

it.each(['/chat/updateBlockStatus', '/message/updateBlockStatus'])('%s', async (path) => {
  for (const status of ['block', 'unblock']) {
    expect(await call(path, { number: ada.number, status })).toEqual([201, { block: 'success' }]);
  }
});

it('an edited message', async () => {
  const { body: sent } = await gateway.call('POST', '/message/sendText/main', {
    number: ada.number,
    text: 'Hello.',
  });
  const edit = { number: ada.number, text: 'Good evening.', key: sent.key };
  expect(await call('/chat/updateMessage', edit)).toEqual([
    200,
    {
      key: sent.key,
      message: { conversation: 'Good evening.' },
      messageTimestamp: sent.messageTimestamp,
      status: expect.stringMatching(/^(PENDING|SERVER_ACK|DELIVERY_ACK)$/),
    },
  ]);
});

it('a token lists its own instance alone, and deletes no other', async () => {
  const made = await gateway.call('POST', '/instance/create', { instanceName: 'own' });
  await gateway.call('POST', '/instance/create', { instanceName: 'other' });
  const own = { apikey: made.body.hash };
  const names = async (query = ''): Promise<string[]> =>
    (await gateway.call('GET', `/instance/fetchInstances${query}`, undefined, own)).body.map(
      ({ name }: { name: string }) => name,
    );
  expect(await names()).toEqual(['own']);
  expect(await names('?instanceName=other')).toEqual([]);
  expect((await gateway.call('DELETE', '/instance/delete/other', undefined, own)).status).toBe(401);
  expect((await gateway.call('POST', '/instance/create', { instanceName: 'third' }, own)).status).toBe(401);
  expect((await gateway.call('DELETE', '/instance/delete/own', undefined, own)).status).toBe(200);
  expect((await gateway.call('GET', '/instance/fetchInstances', undefined, own)).status).toBe(401);
});
