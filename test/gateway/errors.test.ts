import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import {
  GatewayErrorAnswer,
  type GatewayErrorCode,
  gatewayErrorCatalogue,
} from 'soundpost-contract/gateway-errors';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Answer,
  API_KEY,
  ada,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

const SEND = '/message/sendMessengerAudio/main';
const MIB = 1024 * 1024;

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let audio: string;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

interface Case {
  readonly name: string;
  readonly code: GatewayErrorCode;
  readonly ask: () => Promise<Answer>;
  /** In one of the messages. */
  readonly says: RegExp;
}

const send = (body: unknown, headers?: Record<string, string>): Promise<Answer> =>
  gateway.call('POST', SEND, body, headers);

const cases: Case[] = [
  {
    name: 'a number is missing',
    code: 'bad_request',
    ask: () => send({ audio }),
    says: /^number: /,
  },
  {
    name: 'a number is a word',
    code: 'bad_request',
    ask: () => send({ number: 'Ada', audio }),
    says: /^number: must be a phone number/,
  },
  {
    name: 'audio is missing',
    code: 'bad_request',
    ask: () => send({ number: ada.number }),
    says: /^audio: must be an http\(s\) URL/,
  },
  {
    name: 'audio is none of its forms',
    code: 'bad_request',
    ask: () => send({ number: ada.number, audio: 'file:///etc/passwd' }),
    says: /^audio: must be an http\(s\) URL/,
  },
  {
    name: 'a delay is below 0',
    code: 'bad_request',
    ask: () => send({ number: ada.number, audio, delay: -1 }),
    says: /^delay: /,
  },
  {
    name: 'a delay is a word',
    code: 'bad_request',
    ask: () => send({ number: ada.number, audio, delay: 'soon' }),
    says: /^delay: must be milliseconds/,
  },
  {
    name: 'the webhook of a new instance has a number as its address',
    code: 'bad_request',
    ask: () => gateway.call('POST', '/instance/create', { instanceName: 'hooked', webhook: { url: 5 } }),
    says: /^webhook\.url: /,
  },
  {
    name: 'a mention is no address',
    code: 'bad_request',
    ask: () => send({ number: ada.number, audio, mentioned: [ada.number, 'who?'] }),
    says: /^mentioned\[1\]: /,
  },
  {
    name: 'a body is no JSON',
    code: 'bad_request',
    ask: () => send('{"number":', { 'Content-Type': 'application/json' }),
    says: /^body: /,
  },
  {
    name: 'a body has another type',
    code: 'unsupported_media_type',
    ask: () => send('number=1', { 'Content-Type': 'application/x-www-form-urlencoded' }),
    says: /^Content-Type: /,
  },
  {
    name: 'a multipart body breaks off',
    code: 'bad_request',
    ask: () =>
      send('--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc', {
        'Content-Type': 'multipart/form-data; boundary=x',
      }),
    says: /^body: /,
  },
  {
    name: 'nobody has the number',
    code: 'unknown_recipient',
    ask: () => send({ number: '4930123456', audio }),
    says: /^number: nobody/,
  },
  {
    name: 'the JID is of a person but asks for a group',
    code: 'unknown_recipient',
    ask: () => send({ number: `${ada.number}@g.us`, audio }),
    says: /^number: nobody/,
  },
  {
    name: 'the JID belongs to a network of which nothing is known',
    code: 'unknown_recipient',
    ask: () => send({ number: `${ada.number}@example.org`, audio }),
    says: /^number: nobody/,
  },
  {
    name: 'the audio is text',
    code: 'not_audio',
    ask: () => send({ number: ada.number, audio: Buffer.from('no sound at all').toString('base64') }),
    says: /^audio: /,
  },
  {
    name: 'the audio is a playlist that reads a local file',
    code: 'not_audio',
    ask: () => {
      const playlist = `#EXTM3U\n#EXTINF:1,\n${join(folder.path, 'tone.ogg')}\n#EXT-X-ENDLIST\n`;
      return send({ number: ada.number, audio: Buffer.from(playlist).toString('base64') });
    },
    says: /^audio: /,
  },
  {
    name: 'the audio URL leads to this machine',
    code: 'audio_unreachable',
    ask: () => send({ number: ada.number, audio: `${gateway.url}/health/live` }),
    says: /^audio: the address is not allowed: 127\.0\.0\.1 is in 127\.0\.0\.0\/8.*OUTBOUND_ALLOW/,
  },
  {
    name: 'there is no such instance',
    code: 'instance_not_found',
    ask: () => gateway.call('POST', '/message/sendMessengerAudio/nowhere', { number: ada.number, audio }),
    says: /^instance: /,
  },
  {
    name: 'a key is wrong',
    code: 'unauthorized',
    ask: () => gateway.call('POST', SEND, {}, { apikey: 'wrong' }),
    says: /^apikey: /,
  },
  {
    name: 'the instance is in no such group',
    code: 'group_not_found',
    ask: () => gateway.call('GET', '/group/participants/main?groupJid=120363999999999999@g.us'),
    says: /^groupJid: /,
  },
  {
    name: 'the chat holds no such message',
    code: 'message_not_found',
    ask: () =>
      gateway.call('POST', '/chat/updateMessage/main', { number: ada.number, text: 'x', key: { id: 'x' } }),
    says: /^key\.id: /,
  },
  {
    name: 'the instance has no such delivery',
    code: 'delivery_not_found',
    ask: () => gateway.call('POST', '/webhook/replay/main', { deliveryId: 'evt_1-0' }),
    says: /^deliveryId: /,
  },
  {
    name: 'a message is somebody else’s',
    code: 'not_editable',
    async ask() {
      const { body } = await send({ number: ada.number, audio });
      return gateway.call('POST', '/chat/updateMessage/main', {
        number: ada.number,
        text: 'x',
        key: { ...body.key, fromMe: false },
      });
    },
    says: /^key: /,
  },
  {
    name: 'the network does not let the instance do it',
    code: 'network_refused',
    async ask() {
      await gateway.call('POST', '/instance/create', { instanceName: 'guest' });
      const { body: contacts } = await gateway.call('POST', '/chat/findContacts/main');
      const group = contacts.find(({ isGroup }: { isGroup: boolean }) => isGroup).id;
      const { body } = await gateway.call('GET', `/group/inviteCode/main?groupJid=${group}`);
      await gateway.call('GET', `/group/acceptInviteCode/guest?inviteCode=${body.inviteCode}`);
      return gateway.call('GET', `/group/inviteCode/guest?groupJid=${group}`);
    },
    says: /admin/,
  },
  {
    name: 'an instance is logged out',
    code: 'not_connected',
    async ask() {
      await gateway.call('POST', '/instance/create', { instanceName: 'away' });
      await gateway.call('DELETE', '/instance/logout/away');
      return gateway.call('POST', '/message/sendMessengerAudio/away', { number: ada.number, audio });
    },
    says: /not connected/,
  },
  {
    name: 'an Idempotency-Key was used before with another body',
    code: 'idempotency_mismatch',
    async ask() {
      await send({ number: ada.number, audio }, { 'Idempotency-Key': 'errors' });
      return send({ number: '12025550102', audio }, { 'Idempotency-Key': 'errors' });
    },
    says: /^Idempotency-Key: /,
  },
  {
    name: 'there is no such path',
    code: 'not_found',
    ask: () => gateway.call('GET', '/nowhere'),
    says: /nothing was found at this path/,
  },
  {
    name: 'a path has other methods',
    code: 'method_not_allowed',
    ask: () => gateway.call('GET', SEND),
    says: /POST/,
  },
  {
    name: 'an instance has the name already',
    code: 'name_in_use',
    ask: () => gateway.call('POST', '/instance/create', { instanceName: 'main' }),
    says: /^instanceName: /,
  },
  {
    name: 'an instance name has other characters',
    code: 'bad_request',
    ask: () => gateway.call('POST', '/instance/create', { instanceName: 'a b' }),
    says: /^instanceName: /,
  },
  {
    name: 'a network has no such thing',
    code: 'unsupported',
    async ask() {
      await gateway.call('POST', '/instance/create', { instanceName: 'phone', transport: 'whatsapp' });
      return gateway.call('POST', '/inbox/api/instances/phone/chats/nobody/opened');
    },
    says: /whatsapp/,
  },
  {
    name: 'an Idempotency-Key is too long',
    code: 'bad_request',
    ask: () => send({ number: ada.number, audio }, { 'Idempotency-Key': 'k'.repeat(256) }),
    says: /^Idempotency-Key: /,
  },
];

describe('an error answer', () => {
  it.for(cases)('$code when $name', async ({ code, ask, says }) => {
    const answer = await ask();
    const body = GatewayErrorAnswer.parse(answer.body);
    const { httpStatus } = gatewayErrorCatalogue[code];
    expect(body).toMatchObject({ code, status: httpStatus });
    expect(answer.status).toBe(httpStatus);
    expect(body.response.message.some((message) => says.test(message))).toBe(true);
    expect(body.requestId).toBe(answer.headers.get('x-request-id'));
    expect(JSON.stringify(body)).not.toContain(folder.path);
  });

  it('lists one message a fault', async () => {
    const { body } = await send({ number: '', audio: '', delay: 'soon', mentioned: 7 });
    const fields = body.response.message.map((message: string) => message.split(':')[0]);
    expect(fields.toSorted()).toEqual(['audio', 'delay', 'mentioned', 'number']);
  });

  it('names the methods that a path takes', async () => {
    const { headers } = await gateway.call('GET', SEND);
    expect(headers.get('allow')).toBe('POST');
  });
});

/** Where the rows are that need a gateway of their own. */
const shownElsewhere: readonly GatewayErrorCode[] = [
  'idempotency_in_progress', // idempotency.test.ts
  'payload_too_large', // below
  'rate_limited', // send-rate.test.ts, wrong-keys.test.ts
  'timeout', // keeping.all.test.ts
  'service_unavailable', // health.all.test.ts, keeping.all.test.ts
  'standby', // lease/standby.test.ts
  'internal_error', // below
];

it('every row of the catalogue is shown by a real request', () => {
  const shown = new Set([...cases.map(({ code }) => code), ...shownElsewhere]);
  expect([...shown].toSorted()).toEqual(Object.keys(gatewayErrorCatalogue).toSorted());
});

it('what nobody foresaw answers internal_error, and says nothing of what it was', async () => {
  const client = new Redis(redis.socketPath);
  const key = (await client.keys('*:chats:*'))[0] ?? '';
  await client.rename(key, `${key}-elsewhere`);
  await client.set(key, 'no sorted set');
  const { status, body } = await gateway.call('POST', '/chat/findChats/main');
  await client.rename(`${key}-elsewhere`, key);
  client.disconnect();
  expect([status, body.code]).toEqual([500, 'internal_error']);
  expect(body.response.message).toEqual(['something went wrong inside the gateway']);
});

describe('a body that is too large', () => {
  it.each([
    ['multipart of more than 100 MiB', 'multipart/form-data; boundary=x', 200 * MIB],
    ['JSON of more than 24 MiB', 'application/json', 24 * MIB + 1],
  ])('is refused by its declared length, before it is sent: %s', async (_what, type, bytes) => {
    const answer = await announce({ 'Content-Type': type, 'Content-Length': String(bytes) });
    expect(answer).toMatchObject({ status: 413, body: { code: 'payload_too_large' } });
  });

  function announce(headers: Record<string, string>): Promise<{ status: number | undefined; body: unknown }> {
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(`${gateway.url}${SEND}`, {
        method: 'POST',
        headers: { apikey: API_KEY, ...headers },
      });
      outgoing.once('response', async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode, body: JSON.parse(text) });
        outgoing.destroy();
      });
      outgoing.once('error', reject);
      outgoing.flushHeaders();
    });
  }
});
