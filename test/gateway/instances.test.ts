import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CreateInstanceAnswer } from 'soundpost-contract/gateway-instances';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ada,
  chatMessages,
  eventually,
  hedy,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let audio: string;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
  gateway = await start();
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const start = (): Promise<TestGateway> => startTestGateway({ redisUrl: redis.url, dataDir: folder.path });

const names = async (): Promise<string[]> =>
  (await gateway.call('GET', '/instance/fetchInstances')).body.map(
    ({ instanceName }: { instanceName: string }) => instanceName,
  );

it('a gateway that never had an instance begins with one named main', async () => {
  expect(await names()).toEqual(['main']);
  await gateway.call('DELETE', '/instance/delete/main');
  await gateway.close();
  gateway = await start();
  // Deleting it was somebody's will.
  expect(await names()).toEqual([]);
  await gateway.call('POST', '/instance/create', { instanceName: 'main' });
});

describe('an instance', () => {
  it('is created with its token, shown once, and the six settings', async () => {
    const { status, body } = await gateway.call('POST', '/instance/create', {
      instanceName: 'office',
      readMessages: true,
      msgCall: 'Please write.',
    });
    expect(status).toBe(201);
    const { instance, hash, settings } = CreateInstanceAnswer.parse(body);
    expect(instance).toMatchObject({ instanceName: 'office', transport: 'loopback', status: 'open' });
    expect(hash.length).toBeGreaterThanOrEqual(32);
    expect(settings).toEqual({
      reject_call: false,
      groups_ignore: false,
      always_online: false,
      read_messages: true,
      read_status: true,
      sync_full_history: false,
    });
    const listed = (await gateway.call('GET', '/instance/fetchInstances')).body;
    expect(JSON.stringify(listed)).not.toContain(hash);
    const { instanceId: id, instanceName: name, status: connectionStatus } = instance;
    // Also by the names that the public server has.
    expect(listed).toContainEqual({ ...instance, id, name, connectionStatus, ownerJid: expect.any(String) });
  });

  it.each([
    ['whatsapp for WHATSAPP-BAILEYS', { integration: 'WHATSAPP-BAILEYS' }, [201, 'whatsapp']],
    [
      'a transport that is named beside it',
      { integration: 'WHATSAPP-BAILEYS', transport: 'loopback' },
      [201, 'loopback'],
    ],
    ['loopback where it says nothing', { integration: '' }, [201, 'loopback']],
    ['no other', { integration: 'WHATSAPP-BUSINESS' }, [400, /^integration: must be WHATSAPP-BAILEYS/]],
  ])('the public server’s integration means %s', async (_what, fields, [status, expected]) => {
    const answer = await gateway.call('POST', '/instance/create', { instanceName: 'foreign', ...fields });
    expect(answer.status).toBe(status);
    if (status === 201) {
      expect(answer.body.instance.transport).toBe(expected);
      await gateway.call('DELETE', '/instance/delete/foreign');
    } else {
      expect(answer.body.response.message[0]).toMatch(expected as RegExp);
    }
  });

  it('takes a token of the caller’s choice, but of 16 to 128 characters, and none that is in use', async () => {
    const token = 'a-token-of-my-own-choice';
    const create = (instanceName: string, chosen: string) =>
      gateway.call('POST', '/instance/create', { instanceName, token: chosen });
    expect((await create('chosen', token)).body.hash).toBe(token);
    // Public clients send an empty one where they want one made.
    expect((await create('made', '')).body.hash).toMatch(/^[\w-]{43}$/);
    expect((await create('short', 'x'.repeat(15))).body.code).toBe('bad_request');
    expect((await create('long', 'x'.repeat(129))).body.code).toBe('bad_request');
    expect((await create('twin', token)).body.code).toBe('bad_request');
    expect(await names()).not.toContain('twin');
  });

  it.for([
    ['proxyHost', { proxyHost: 'proxy.example' }, /^proxyHost: is not supported: .*OUTBOUND_PROXY/],
    ['chatwootUrl', { chatwootUrl: 'https://chat.example' }, /^chatwootUrl: /],
    ['rabbitmq', { rabbitmq: { enabled: true, events: ['CALL'] } }, /^rabbitmq: /],
    ['sqs', { sqs: { enabled: 'true' } }, /^sqs: /],
    ['websocket', { websocket: { enabled: true } }, /^websocket: /],
    ['webhookByEvents', { webhookByEvents: true }, /^webhookByEvents: .*use webhook/],
    ['businessId', { businessId: '1234' }, /^businessId: /],
    ['wavoipToken', { wavoipToken: 'x' }, /^wavoipToken: /],
    [
      'webhook.headers.jwt_key',
      { webhook: { url: 'https://example.com', headers: { jwt_key: 'x' } } },
      /^webhook\.headers\.jwt_key: /,
    ],
  ] as const)('is not made with a switch that does nothing here: %s', async ([name, body, says]) => {
    const answer = await gateway.call('POST', '/instance/create', { instanceName: 'switched', ...body });
    expect([answer.status, answer.body.code]).toEqual([400, 'bad_request']);
    expect(answer.body.response.message).toEqual([expect.stringMatching(says)]);
    expect(answer.body.response.message[0]).toContain(name);
    expect(await names()).not.toContain('switched');
  });

  it('is made where such a switch is off, or empty', async () => {
    const off = {
      ...{ proxyHost: '', proxyPort: null, proxyProtocol: 'false', chatwootImportMessages: false },
      ...{ rabbitmq: { enabled: false, events: ['CALL'] }, nats: {}, webhookEvents: [], businessId: '' },
      ...{ number: '', wavoipToken: '' },
    };
    const { status } = await gateway.call('POST', '/instance/create', { instanceName: 'unswitched', ...off });
    expect(status).toBe(201);
    const settings = await gateway.call('POST', '/settings/set/unswitched', { wavoipToken: 'x' });
    expect(settings.body.response.message).toEqual([expect.stringMatching(/^wavoipToken: is not supported/)]);
    await gateway.call('DELETE', '/instance/delete/unswitched');
  });

  it('cannot be named like another one’s id', async () => {
    const { body } = await gateway.call('POST', '/instance/create', {
      instanceName: '123e4567-e89b-42d3-a456-426614174000',
    });
    expect(body.code).toBe('bad_request');
  });

  it('starts with three people and a group of its own, and is not in its own contacts', async () => {
    await gateway.call('POST', '/instance/create', { instanceName: 'stateful' });
    const { body: chats } = await gateway.call('GET', '/inbox/api/instances/stateful/chats');
    expect(chats.map(({ isGroup }: { isGroup: boolean }) => isGroup)).toEqual([false, false, false, true]);
    const { body: other } = await gateway.call('GET', '/inbox/api/instances/office/chats');
    expect(chats[3].jid).not.toBe(other[3].jid);
    const { body: instances } = await gateway.call('GET', '/inbox/api/instances');
    const own = instances.find(({ name }: { name: string }) => name === 'stateful').ownJid;
    expect(chats.map(({ jid }: { jid: string }) => jid)).not.toContain(own);
  });

  it('is gone after deleting, with its messages, its number and its name', async () => {
    await gateway.call('POST', '/instance/create', { instanceName: 'short-lived' });
    await gateway.call('POST', '/message/sendMessengerAudio/short-lived', { number: ada.number, audio });
    const { body: instances } = await gateway.call('GET', '/inbox/api/instances');
    const { ownJid } = instances.find(({ name }: { name: string }) => name === 'short-lived');
    const { body } = await gateway.call('DELETE', '/instance/delete/short-lived');
    expect(body).toMatchObject({
      status: 'SUCCESS',
      error: false,
      response: { message: expect.any(String) },
    });
    const toItsNumber = await gateway.call('POST', '/message/sendMessengerAudio/main', {
      number: ownJid,
      audio,
    });
    expect(toItsNumber.body.code).toBe('unknown_recipient');
    expect((await gateway.call('POST', '/instance/create', { instanceName: 'short-lived' })).status).toBe(
      201,
    );
    expect(await chatMessages(gateway, 'short-lived', ada.jid)).toEqual([]);
  });
});

it('instances, tokens, messages and their status survive a restart', async () => {
  const { body: created } = await gateway.call('POST', '/instance/create', { instanceName: 'lasting' });
  const { body: sent } = await gateway.call('POST', '/message/sendMessengerAudio/lasting', {
    number: hedy.number,
    audio,
  });
  await eventually(
    () => chatMessages(gateway, 'lasting', hedy.jid),
    ([message]) => message?.status === 'DELIVERY_ACK',
  );
  await gateway.close();
  gateway = await start();
  const state = await gateway.call('GET', '/instance/connectionState/lasting', undefined, {
    apikey: created.hash,
  });
  expect(state.status).toBe(200);
  expect(await chatMessages(gateway, 'lasting', hedy.jid)).toMatchObject([
    { key: sent.key, status: 'DELIVERY_ACK', message: sent.message },
  ]);
  const { directPath } = sent.message.audioMessage;
  expect((await fetch(`${gateway.url}${directPath}`)).status).toBe(200);
  await gateway.call('POST', `/inbox/api/instances/lasting/chats/${hedy.jid}/opened`);
  expect(await chatMessages(gateway, 'lasting', hedy.jid)).toMatchObject([{ status: 'READ' }]);
});
