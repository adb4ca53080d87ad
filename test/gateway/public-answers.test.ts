/** GATEWAY_ANSWERS=public: operations whose answer has no body in the interface answer what the public server does (decisions B). */

import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ada, makeFolder, startTestGateway, type TestGateway } from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path, answersAsPublic: true });
});
afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
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
