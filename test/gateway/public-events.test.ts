/**
 * GATEWAY_ANSWERS=public: the envelope and the payloads of the seven events, field by field. The lists are those of the public server's published source
 * (2.3.6); what an event here lacks of them is named.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { receivedBody } from 'soundpost-testing/received-body';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicEvent } from '../../src/gateway/webhooks/public-events.ts';
import {
  ada,
  eventually,
  makeFolder,
  makeTone,
  reportPairing,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

const ENVELOPE = [
  ...['event', 'instance', 'data', 'destination', 'date_time', 'sender', 'server_url', 'apikey'],
];
const MESSAGE = [
  ...['key.remoteJid', 'key.fromMe', 'key.id', 'key.participant', 'pushName', 'status', 'message'],
  ...['contextInfo.stanzaId', 'contextInfo.participant', 'contextInfo.quotedMessage'],
  ...['contextInfo.mentionedJid', 'messageType', 'messageTimestamp', 'instanceId', 'source'],
];
/** What an event holds where it holds all it can: in a group, with a quote and a mention. */
const FIELDS = {
  'messages.upsert': MESSAGE,
  'send.message': MESSAGE,
  'messages.update': [
    ...['messageId', 'keyId', 'remoteJid', 'fromMe', 'participant', 'status', 'pollUpdates', 'instanceId'],
  ],
  'connection.update': [...['instance', 'state', 'statusReason', 'wuid', 'profileName', 'profilePictureUrl']],
  'qrcode.updated': ['qrcode.instance', 'qrcode.pairingCode', 'qrcode.code', 'qrcode.base64'],
  'group-participants.update': [
    ...['id', 'author', 'participants', 'action', 'participantsData.0.jid', 'participantsData.0.phoneNumber'],
    ...['participantsData.0.name', 'participantsData.0.imgUrl'],
  ],
  call: ['id', 'from', 'chatId', 'date', 'status', 'isVideo', 'isGroup', 'offline'],
} as const;
type Name = keyof typeof FIELDS;

// biome-ignore lint/suspicious/noExplicitAny: a test reads the fields that it expects, and fails where they are not
type Told = any;

let redis: TestRedis;
let client: Redis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let receiver: Server;
let base: string;
const told: { path: string; envelope: Told }[] = [];

beforeAll(async () => {
  redis = await startTestRedis();
  client = new Redis(redis.socketPath);
  folder = await makeFolder();
  receiver = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    told.push({ path: request.url ?? '', envelope: JSON.parse(body.toString()) });
    response.writeHead(204).end();
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  base = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  gateway = await startTestGateway({
    redisUrl: redis.url,
    dataDir: folder.path,
    outboundAllow: base.slice('http://'.length),
    answersAsPublic: true,
  });
  for (const instanceName of ['one', 'two']) {
    const webhook = {
      enabled: true,
      url: `${base}/${instanceName}`,
      byEvents: false,
      base64: false,
      events: [],
    };
    await gateway.call('POST', '/instance/create', { instanceName, webhook });
  }
});
afterAll(async () => {
  client.disconnect();
  await gateway.close();
  receiver.close();
  await redis.close();
  await folder.remove();
});

/** The first event of an instance that fits, as it was posted. */
function posted(instance: string, event: Name, fits: (data: Told) => boolean = () => true): Promise<Told> {
  return eventually(
    async () =>
      told.find(
        ({ path, envelope }) =>
          path.startsWith(`/${instance}`) && envelope.event === event && fits(envelope.data),
      )?.envelope,
    (found) => found !== undefined,
  );
}

const at = (value: Told, path: string): Told => path.split('.').reduce((part, name) => part?.[name], value);
const missing = (value: Told, fields: readonly string[]): string[] =>
  fields.filter((field) => at(value, field) === undefined);

function expectWhole(envelope: Told, event: Name, instance: string): void {
  expect(missing(envelope, ENVELOPE)).toEqual([]);
  expect(missing(envelope.data, FIELDS[event])).toEqual([]);
  expect(envelope).toMatchObject({
    event,
    instance,
    destination: `${base}/${instance}`,
    date_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    sender: expect.stringMatching(/^999\d+@people\.loopback$/),
    server_url: gateway.publicUrl,
    apikey: null,
  });
}

const idOf = async (name: string): Promise<string> =>
  (await gateway.call('GET', `/instance/fetchInstances?instanceName=${name}`)).body[0].instanceId;

describe('a group of two instances', () => {
  let group: string;
  let quotedId: string;
  let own: string;
  let other: string;
  let answerId: string;

  beforeAll(async () => {
    const { body: contacts } = await gateway.call('POST', '/chat/findContacts/one');
    group = contacts.find(({ isGroup }: { isGroup: boolean }) => isGroup).id;
    const { body: invitation } = await gateway.call('GET', `/group/inviteCode/one?groupJid=${group}`);
    await gateway.call('GET', `/group/acceptInviteCode/two?inviteCode=${invitation.inviteCode}`);
    const { body: instances } = await gateway.call('GET', '/instance/fetchInstances');
    const jid = (wanted: string) =>
      instances.find(({ name }: { name: string }) => name === wanted).ownerJid as string;
    [own, other] = [jid('one'), jid('two')];
    const { body: asked } = await gateway.call('POST', '/message/sendText/one', {
      number: group,
      text: 'Who plays?',
    });
    quotedId = asked.key.id;
    await posted('two', 'messages.upsert', ({ key }) => key.id === quotedId);
    const { body: answer } = await gateway.call('POST', '/message/sendText/two', {
      number: group,
      text: 'We do, @Ada.',
      quoted: { key: { id: quotedId } },
      mentioned: [ada.number],
    });
    answerId = answer.key.id;
  });

  it.each([
    ['messages.upsert', 'one', false, 'DELIVERY_ACK', 'two'],
    ['send.message', 'two', true, 'PENDING', 'Você'],
  ] as const)('%s has its author, quote and mentions', async (event, instance, fromMe, status, name) => {
    const envelope = await posted(instance, event, ({ key }) => key.id === answerId);
    expectWhole(envelope, event, instance);
    expect(envelope.data).toEqual({
      key: { remoteJid: group, fromMe, id: answerId, participant: other },
      pushName: name,
      status,
      message: { conversation: 'We do, @Ada.' },
      contextInfo: {
        stanzaId: quotedId,
        participant: own,
        quotedMessage: { conversation: 'Who plays?' },
        mentionedJid: [ada.jid],
      },
      messageType: 'conversation',
      messageTimestamp: expect.any(Number),
      instanceId: await idOf(instance),
      // An id of 32 characters.
      source: 'android',
    });
  });

  it('messages.update names the message and its author', async () => {
    const envelope = await posted('two', 'messages.update', ({ keyId }) => keyId === answerId);
    expectWhole(envelope, 'messages.update', 'two');
    expect(envelope.data).toEqual({
      messageId: answerId,
      keyId: answerId,
      remoteJid: group,
      fromMe: true,
      participant: other,
      status: 'SERVER_ACK',
      pollUpdates: null,
      instanceId: await idOf('two'),
    });
  });

  it('messages.update tells a status once, and no text that was changed', async () => {
    const statuses = (): string[] =>
      told
        .filter(({ envelope }) => envelope.event === 'messages.update' && envelope.data.keyId === answerId)
        .map(({ envelope }) => envelope.data.status);
    await posted(
      'two',
      'messages.update',
      (data) => data.keyId === answerId && data.status === 'DELIVERY_ACK',
    );
    const key = { remoteJid: group, fromMe: true, id: answerId };
    const edit = { number: group, text: 'They do.', key };
    expect((await gateway.call('POST', '/chat/updateMessage/two', edit)).status).toBe(200);
    const { body: later } = await gateway.call('POST', '/message/sendText/two', {
      number: group,
      text: 'Later.',
    });
    await posted('two', 'messages.update', ({ keyId }) => keyId === later.key.id);
    expect(statuses()).toEqual(['SERVER_ACK', 'DELIVERY_ACK']);
  });

  it('group-participants.update knows the people', async () => {
    const envelope = await posted('one', 'group-participants.update');
    expectWhole(envelope, 'group-participants.update', 'one');
    expect(envelope.data).toEqual({
      id: group,
      author: other,
      participants: [other],
      action: 'add',
      participantsData: [{ jid: other, phoneNumber: other.split('@')[0], name: null, imgUrl: null }],
    });
  });
});

it('a voice message is an audioMessage, and without quote and mentions has no contextInfo', async () => {
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  const audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
  const { body } = await gateway.call('POST', '/message/sendWhatsAppAudio/one', {
    number: ada.number,
    audio,
  });
  const { data } = await posted('one', 'send.message', ({ key }) => key.id === body.key.id);
  expect(data).toMatchObject({ messageType: 'audioMessage', message: body.message });
  expect(data).not.toHaveProperty('contextInfo');
  expect(data.key).not.toHaveProperty('participant');
});

it('connection.update has the state, its number, and who is there once it is open', async () => {
  await gateway.call('DELETE', '/instance/logout/two');
  const closed = await posted('two', 'connection.update', ({ state }) => state === 'close');
  expect(closed.data).toEqual({ instance: 'two', state: 'close', statusReason: 401 });
  await gateway.call('GET', '/instance/connect/two');
  const opened = await posted('two', 'connection.update', ({ state }) => state === 'open');
  expectWhole(opened, 'connection.update', 'two');
  expect(opened.data).toEqual({
    instance: 'two',
    state: 'open',
    statusReason: 200,
    wuid: opened.sender,
    profileName: 'two',
    profilePictureUrl: null,
  });
});

it('call is that of the network', async () => {
  const { body } = await gateway.call('POST', '/inbox/api/instances/one/calls', { as: ada.jid });
  const envelope = await posted('one', 'call');
  expectWhole(envelope, 'call', 'one');
  expect(envelope.data).toEqual({
    id: body.callId,
    from: ada.jid,
    chatId: ada.jid,
    date: expect.any(String),
    status: 'offer',
    isVideo: false,
    isGroup: false,
    offline: false,
  });
});

describe('qrcode.updated', () => {
  it('has the code and its picture', async () => {
    const code = { pairingCode: 'ABCD-1234', code: '2@x', base64: 'data:image/png;base64,AA==', count: 1 };
    await reportPairing(client, await idOf('one'), code);
    const envelope = await posted('one', 'qrcode.updated');
    expectWhole(envelope, 'qrcode.updated', 'one');
    expect(envelope.data).toEqual({
      qrcode: {
        instance: 'one',
        pairingCode: 'ABCD-1234',
        code: '2@x',
        base64: 'data:image/png;base64,AA==',
      },
    });
  });

  it('says when the codes ran out, and so does connection.update', async () => {
    await reportPairing(client, await idOf('one'), undefined);
    const { data } = await posted('one', 'qrcode.updated', (one) => 'message' in one);
    expect(data).toEqual({ message: expect.any(String), statusCode: 500 });
    const refused = await posted('one', 'connection.update', ({ state }) => state === 'refused');
    expect(refused.data).toEqual({ instance: 'one', state: 'refused', statusReason: 428 });
  });
});

it('a webhook that names no events is told of all', async () => {
  const { body } = await gateway.call('GET', '/webhook/find/one');
  expect(body.webhook.events).toEqual(expect.arrayContaining([...Object.keys(FIELDS), 'presence.update']));
});

describe('a message', () => {
  const shown = (key: object, more: object = {}): Told =>
    (
      publicEvent(
        {
          event: 'messages.upsert',
          instance: 'one',
          date_time: '2026-11-28T10:00:00.000Z',
          sender: '1@s.whatsapp.net',
          data: {
            key: { remoteJid: '49@s.whatsapp.net', fromMe: false, id: 'X', ...key },
            pushName: null,
            message: { conversation: 'x' },
            messageType: 'conversation',
            messageTimestamp: '1795000000',
            status: 'DELIVERY_ACK',
            ...more,
          },
        },
        { instanceId: 'id', destination: 'https://x', serverUrl: 'https://y' },
      ) as Told
    ).data;

  it('of somebody without a name has the number of its author', () => {
    expect(shown({}).pushName).toBe('49');
    expect(shown({ participant: '50@s.whatsapp.net' }).pushName).toBe('50');
    expect(shown({}, { pushName: 'Ada' }).pushName).toBe('Ada');
    expect(shown({ fromMe: true }, { pushName: 'Ada' }).pushName).toBe('Você');
  });

  it.each([
    ['ios', `3A${'0'.repeat(18)}`],
    ['web', `3EB0${'0'.repeat(18)}`],
    ['android', '0'.repeat(32)],
    ['android', '0'.repeat(21)],
    ['desktop', '0'.repeat(18)],
    ['desktop', '3F00'],
    ['unknown', 'a-name-of-xmpp'],
  ])('comes from %s by the form of its id', (source, id) => {
    expect(shown({ id }).source).toBe(source);
  });
});
