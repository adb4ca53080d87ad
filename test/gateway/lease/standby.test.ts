/** What a gateway answers while another one on the same Redis serves. */

import { GatewayErrorAnswer } from 'soundpost-contract/gateway-errors';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sendVoiceMessage } from '../../../src/followups/kinds/gateway-client.ts';
import {
  API_KEY,
  ada,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from '../gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let active: TestGateway;
let standby: TestGateway;

beforeAll(async () => {
  [redis, folder] = await Promise.all([startTestRedis(), makeFolder()]);
  const setting = { redisUrl: redis.url, dataDir: folder.path };
  active = await startTestGateway(setting);
  standby = await startTestGateway(setting);
});

afterAll(async () => {
  await Promise.all([active.close(), standby.close()]);
  await redis.close();
  await folder.remove();
});

it('lives, and is not ready', async () => {
  expect((await standby.call('GET', '/health/live')).status).toBe(200);
  const ready = await standby.call('GET', '/health/ready');
  expect(ready).toMatchObject({
    status: 503,
    body: { status: 'unavailable', code: 'standby', redis: 'ok', storage: 'ok' },
  });
  expect(Number(ready.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await active.call('GET', '/health/ready')).body).not.toHaveProperty('code');
});

it('refuses every operation, whoever asks, with when to ask again', async () => {
  const asked = [
    ['POST', '/message/sendMessengerAudio/main'],
    ['GET', '/instance/fetchInstances'],
    ['GET', '/instance/connectionState/main'],
    ['POST', '/webhook/set/main'],
    ['GET', '/inbox/api/instances'],
    ['GET', '/nowhere'],
  ] as const;
  for (const [method, path] of asked) {
    for (const apikey of [API_KEY, '']) {
      const { status, body, headers } = await standby.call(method, path, undefined, { apikey });
      const { code, requestId } = GatewayErrorAnswer.parse(body);
      expect([status, code, requestId]).toEqual([503, 'standby', headers.get('x-request-id')]);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
  }
  expect(await standby.instanceStates()).toEqual([]);
  expect(await active.instanceStates()).toHaveLength(1);
});

it('is not now to a worker, which keeps the voice message and comes again', async () => {
  const file = `${folder.path}/tone.ogg`;
  await makeTone(file, 1);
  const ask = (url: string) =>
    sendVoiceMessage(
      { url, kind: 'soundpost', brand: 'Messenger', apiKey: API_KEY },
      { instance: 'main', number: ada.number },
      { path: file, sizeBytes: 1, isNote: true, mediaType: 'audio/ogg', url: '' },
      'a key',
    );
  expect(await ask(standby.url)).toMatchObject({ kind: 'not-now', retryAfterSeconds: 5 });
  expect(await ask(active.url)).toMatchObject({ kind: 'sent' });
});

it('serves as soon as the other one has ended', async () => {
  await active.close();
  await until(
    'the other one to be ready',
    async () => (await standby.call('GET', '/health/ready')).status === 200,
  );
  const { body } = await standby.call('GET', '/instance/connectionState/main');
  expect(body.instance.state).toBe('open');
});
