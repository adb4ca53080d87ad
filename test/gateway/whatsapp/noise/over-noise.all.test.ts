// @module-tag openssl
/**
 * The gateway on WhatsApp with Baileys as it is, over a real WebSocket and the real encryption, down to what the devices of the other side decrypt. Only the
 * server is ours (whatsapp-server.ts), so it proves nothing of what phones and WhatsApp's own servers make of it.
 */
import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { UserFacingSocketConfig } from 'baileys';
import { createLogger } from 'soundpost-kit/observe/logger';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound } from 'soundpost-outbound/outbound';
import { makeNativeNote } from 'soundpost-testing/native-note';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { GatewayOptions, RunningGateway } from '../../../../src/gateway/gateway-options.ts';
import { startGateway } from '../../../../src/gateway/start.ts';
import { decrypted } from '../../decrypted.ts';
import { type Answer, API_KEY, caller, gatewayOptions, makeFolder, makeTone } from '../../gateway-fixture.ts';
import { startTrustedServer } from './trusted-server.ts';
import type { Group, Person, Received, WhatsAppServer } from './whatsapp-server.ts';

const OWN = '4915112345678';
const OLD = [2, 3000, 1] as const;
const SENDS = 100;
const CUTS = 10;

const current = vi.hoisted(() => ({ url: '' }));
vi.mock('baileys', async (original) => {
  const baileys = await original<typeof import('baileys')>();
  return {
    ...baileys,
    makeWASocket: (config: UserFacingSocketConfig) =>
      baileys.makeWASocket({ ...config, waWebSocketUrl: current.url }),
  };
});

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let server: WhatsAppServer;
let gateway: RunningGateway;
let ada: Person;
let hedy: Person;
let group: Group;
let note: Buffer;

async function start(more: Partial<GatewayOptions> = {}): Promise<RunningGateway> {
  return startGateway({
    ...(await gatewayOptions({ redisUrl: redis.url, dataDir: folder.path })),
    // No name leads anywhere: WhatsApp's own page neither.
    outbound: createOutbound({
      allow: parseAllowRules(server.host),
      ports: [443],
      logger: createLogger('silent'),
      userAgent: 'soundpost-tests',
      resolve: async () => [],
    }),
    sendsPerMinute: { whatsapp: 0 },
    ...more,
  });
}

const call = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<Answer> =>
  caller(`http://127.0.0.1:${gateway.port}`)(method, path, body, { apikey: API_KEY, ...headers });
const stateOf = async (instance: string): Promise<Answer['body']> =>
  (await call('GET', `/instance/connectionState/${instance}`)).body.instance;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  const at = (name: string): string => join(folder.path, name);
  server = await startTrustedServer(OWN, folder.path);
  current.url = `wss://${server.host}/ws/chat`;
  ada = server.addPerson('4915100000001');
  hedy = server.addPerson('4915100000002');
  group = server.addGroup('120363000000000001', 'The Sound Society', {
    [`${OWN}@s.whatsapp.net`]: 'superadmin',
    [ada.jid]: 'admin',
    [hedy.jid]: undefined,
  });
  await makeTone(at('tone.wav'), 2);
  await makeNativeNote(at('tone.wav'), at('note.ogg'));
  note = await readFile(at('note.ogg'));
  gateway = await start();
});
afterAll(async () => {
  await gateway.close();
  await server.close();
  await redis.close();
  await folder.remove();
});

const of = (person: Person, id: string): Promise<Received> =>
  until(`${id} arrives`, () => server.received.find((got) => got.by === person.jid && got.id === id));
const form = (fields: Record<string, string>): FormData => {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  body.append('file', new Blob([new Uint8Array(note)]), 'note.ogg');
  return body;
};

it('a pairing code that WhatsApp refuses is given to nobody, one that it accepts once', async () => {
  const made = await call('POST', '/instance/create', {
    instanceName: 'phone',
    integration: 'WHATSAPP-BAILEYS',
  });
  expect(made.body.instance).toMatchObject({ transport: 'whatsapp', status: 'close' });
  server.refusesCode = { code: '400', text: 'bad-request' };
  const refused = await call('GET', `/instance/connect/phone?number=${OWN}`);
  expect(refused.status).toBe(502);
  expect(refused.body.response.message).toEqual([
    expect.stringMatching(/^number: WhatsApp gave no pairing code .*400 bad-request/),
  ]);
  server.refusesCode = undefined;
  const first = await call('GET', `/instance/connect/phone?number=${OWN}`);
  expect(first.body.pairingCode).toMatch(/^[0-9A-Z]{8}$/);
  const again = await call('GET', `/instance/connect/phone?number=${OWN}`);
  expect(again.body.pairingCode).toBe(first.body.pairingCode);
});

it('pairs by the picture, as a phone does, also after the server has retired two', async () => {
  let { body } = await call('GET', '/instance/connect/phone');
  const codes = [body.code];
  for (let nth = 0; nth < 2; nth += 1) {
    server.retirePicture(body.code);
    body = await until('there is another picture', async () => {
      const next = (await call('GET', '/instance/connect/phone')).body;
      return next.code !== body.code && next;
    });
    codes.push(body.code);
  }
  expect(body.base64).toMatch(/^data:image\/png;base64,/);
  // The ref in it is the same.
  expect(new Set(codes.map((code) => code.split(',')[0])).size).toBe(1);
  expect(() => server.scan(codes[1])).toThrow('could not link');
  server.scan(body.code);
  await until('it is open', async () => (await stateOf('phone')).state === 'open');
});

describe('the eleven operations', () => {
  it('send audio: what was uploaded decrypts to the file, by the key that reached the device', async () => {
    const { status, body } = await call(
      'POST',
      '/message/sendWhatsAppAudio/phone',
      form({ number: ada.jid }),
    );
    expect(status).toBe(200);
    const { message } = await of(ada, body.key.id);
    const sound = message.audioMessage;
    expect(sound).toMatchObject({ ptt: true, mimetype: 'audio/ogg; codecs=opus', seconds: 2 });
    const encrypted = server.media.get(sound?.directPath ?? '') ?? Buffer.alloc(0);
    const { plain } = decrypted(encrypted, Buffer.from(sound?.mediaKey ?? '').toString('base64'));
    expect(plain.equals(note)).toBe(true);
    expect(Buffer.from(sound?.fileSha256 ?? '')).toEqual(createHash('sha256').update(note).digest());
  });

  it('send audio to a group, with a mention', async () => {
    const fields = { number: group.jid, mentioned: JSON.stringify([hedy.jid]) };
    const { status, body } = await call('POST', '/message/sendWhatsAppAudio/phone', form(fields));
    expect(status).toBe(200);
    const got = await Promise.all([ada, hedy].map((person) => of(person, body.key.id)));
    for (const { message } of got) {
      expect(message.audioMessage?.contextInfo?.mentionedJid).toEqual([hedy.jid]);
    }
  });

  it('update a message', async () => {
    const { body } = await call('POST', '/message/sendText/phone', { number: ada.jid, text: 'Helo.' });
    const edit = { number: ada.jid, text: 'Hello.', key: body.key };
    expect((await call('POST', '/chat/updateMessage/phone', edit)).status).toBe(200);
    const changed = await until('the change arrives', () =>
      server.received.find(({ message }) => message.protocolMessage?.key?.id === body.key.id),
    );
    expect(changed.message.protocolMessage?.editedMessage?.extendedTextMessage?.text).toBe('Hello.');
  });

  it('set settings', async () => {
    const { status, body } = await call('POST', '/settings/set/phone', { readMessages: true });
    expect([status, body.settings.settings.read_messages]).toEqual([201, true]);
  });

  it('send a presence', async () => {
    const before = server.nodes.length;
    const presence = { number: ada.jid, presence: 'recording', delay: 10 };
    expect((await call('POST', '/chat/sendPresence/phone', presence)).status).toBe(201);
    const shown = await until('it shows', () =>
      server.nodes.slice(before).find(({ tag }) => tag === 'chatstate'),
    );
    expect(shown.attrs.to).toBe(ada.device.lid);
  });

  it('block and unblock', async () => {
    for (const [status, expected] of [
      ['block', true],
      ['unblock', false],
    ] as const) {
      const answer = await call('POST', '/message/updateBlockStatus/phone', { number: ada.jid, status });
      expect(answer.status).toBe(201);
      expect(server.blocked.has(ada.device.lid)).toBe(expected);
    }
  });

  it('fetch and send an invitation', async () => {
    const { body } = await call('GET', `/group/inviteCode/phone?groupJid=${group.jid}`);
    expect(body.inviteCode).toBe(group.code);
    const invite = { groupJid: group.jid, description: 'Come in.', numbers: [hedy.jid] };
    const { status } = await call('POST', '/group/sendInvite/phone', invite);
    expect(status).toBe(200);
    await until('it arrives', () =>
      server.received.find(
        ({ by, message }) => by === hedy.jid && JSON.stringify(message).includes(group.code),
      ),
    );
  });

  it('list members, chats, contacts and privacy', async () => {
    const members = await call('GET', `/group/participants/phone?groupJid=${group.jid}`);
    expect(members.body.participants.map(({ id, admin }: Answer['body']) => [id, admin])).toEqual(
      expect.arrayContaining([[ada.jid, 'admin']]),
    );
    const chats = await call('POST', '/chat/findChats/phone');
    expect(chats.body.map(({ remoteJid }: Answer['body']) => remoteJid)).toEqual(
      expect.arrayContaining([ada.jid, group.jid]),
    );
    const contacts = await call('POST', '/chat/findContacts/phone', { where: { id: group.jid } });
    expect(contacts.body).toMatchObject([{ remoteJid: group.jid, isGroup: true, pushName: group.subject }]);
    const privacy = await call('GET', '/chat/fetchPrivacySettings/phone');
    expect(privacy.body).toMatchObject({ profile: 'contacts', online: 'match_last_seen', last: 'none' });
  });
});

it('receipts of the other side move a message on', async () => {
  const { body } = await call('POST', '/message/sendWhatsAppAudio/phone', form({ number: ada.jid }));
  const last = async () =>
    (await call('POST', '/chat/findChats/phone', { where: { remoteJid: ada.jid } })).body[0]?.lastMessage;
  for (const [type, status] of [
    [undefined, 'DELIVERY_ACK'],
    ['read', 'READ'],
    ['played', 'PLAYED'],
  ] as const) {
    server.receipt(body.key.id, ada.jid, type);
    await until(status, async () => (await last())?.status === status);
  }
});

describe('people by number and LID', () => {
  const TIMER = 604_800;
  const send = (number: string, more: object = {}): Promise<Answer> =>
    call('POST', '/message/sendText/phone', { number, text: 'Hello.', ...more });

  it('are written to by LID where it is known, by whichever address the caller names them', async () => {
    const stranger = server.addPersonByLid('777000000000001');
    const olga = server.addPerson('4915100000009');
    for (const [number, person, to] of [
      // The server tells the LID of who is looked up.
      [olga.jid, olga, olga.device.lid],
      [olga.device.lid, olga, olga.device.lid],
      [stranger.jid, stranger, stranger.jid],
    ] as const) {
      const { status, body } = await send(number);
      expect([status, body.key.remoteJid]).toEqual([201, person.jid]);
      expect((await of(person, body.key.id)).to).toBe(to);
    }
    const { body } = await call('POST', '/chat/findChats/phone');
    const jids = body.map(({ remoteJid }: Answer['body']) => remoteJid);
    expect(jids.filter((jid: string) => jid === olga.jid || jid === olga.device.lid)).toEqual([olga.jid]);
  });

  it('are answered without a number, under the timer that their message has', async () => {
    const stranger = server.addPersonByLid('777000000000002');
    await send(stranger.jid);
    const said = await server.say(stranger, {
      extendedTextMessage: { text: 'Who is this?', contextInfo: { expiration: TIMER } },
    });
    const chat = await until('it arrived', async () => {
      const { body } = await call('POST', '/chat/findChats/phone', { where: { remoteJid: stranger.jid } });
      return body[0]?.lastMessage?.key.id === said && body[0];
    });
    expect(chat.remoteJid).toBe(stranger.jid);
    const { body } = await send(stranger.jid);
    const { message } = await of(stranger, body.key.id);
    expect(message.extendedTextMessage?.contextInfo?.expiration).toBe(TIMER);
  });

  it('are one chat with all messages when their number becomes known later', async () => {
    const stranger = server.addPersonByLid('777000000000003');
    const number = '4915100000033@s.whatsapp.net';
    const before = (await send(stranger.jid)).body.key;
    const said = await server.say(stranger, { conversation: 'My number.' }, number);
    const chats = await until('the chat has the number', async () => {
      const { body } = await call('POST', '/chat/findChats/phone');
      const found = body.filter(({ remoteJid }: Answer['body']) =>
        [number, stranger.jid].includes(remoteJid),
      );
      return found.some(({ lastMessage }: Answer['body']) => lastMessage?.key.id === said) && found;
    });
    expect(chats.map(({ remoteJid }: Answer['body']) => remoteJid)).toEqual([number]);
    const byLid = await call('POST', '/chat/findChats/phone', { where: { remoteJid: stranger.jid } });
    expect(byLid.body).toHaveLength(1);
    // A message of before is changed by either address.
    const edit = { number, text: 'Hi.', key: before };
    expect((await call('POST', '/chat/updateMessage/phone', edit)).status).toBe(200);
  });

  it('a message that WhatsApp refuses with 463 is tried once, and says why', async () => {
    const limited = server.addPerson('4915100000463');
    server.refuses = (to) => (to === limited.device.lid ? '463' : undefined);
    const { status, body } = await send(limited.jid);
    server.refuses = () => undefined;
    expect([status, body.code, body.response.message]).toEqual([
      502,
      'network_refused',
      ['WhatsApp is limiting whom this account may message (463)'],
    ]);
    const tried = server.nodes.filter(
      ({ tag, attrs }) => tag === 'message' && attrs.to === limited.device.lid,
    );
    expect(tried).toHaveLength(1);
  });

  it('20 messages into 3 groups cost 3 queries, and have the timer of the group', async () => {
    const members = { [`${OWN}@s.whatsapp.net`]: 'superadmin', [ada.jid]: undefined } as const;
    const groups = [4, 5, 6].map((nth) =>
      server.addGroup(`12036300000000000${nth}`, `Group ${nth}`, members, TIMER),
    );
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, nth) => send(groups[nth % 3]?.jid ?? '')),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    expect(server.groupQueries.toSorted()).toEqual(groups.map(({ jid }) => jid));
    const { attrs, message } = await of(ada, answers[0]?.body.key.id);
    expect(attrs.expiration).toBe(String(TIMER));
    expect(message.extendedTextMessage?.contextInfo?.expiration).toBe(TIMER);
  });

  it('a group whose members have changed gets a new sender key', async () => {
    const keys = () =>
      server.received.filter(({ to, by }) => to === group.jid && by === ada.jid).map(({ keyId }) => keyId);
    await send(group.jid);
    await send(group.jid);
    const [first, second] = keys().slice(-2);
    expect(second).toBe(first);
    server.removeMember(group, hedy.jid);
    await until('the event was handled', async () => {
      const { body } = await call('GET', `/group/participants/phone?groupJid=${group.jid}`);
      return body.participants.length === group.members.size;
    });
    await send(group.jid);
    expect(keys().at(-1)).not.toBe(first);
  });

  it('"recording" shows for as long as a delay of 45 s lasts', { timeout: 120_000 }, async () => {
    const before = server.nodes.length;
    const fields = { number: ada.jid, delay: '45000' };
    expect((await call('POST', '/message/sendWhatsAppAudio/phone', form(fields))).status).toBe(200);
    const shown = server.nodes.slice(before).filter(({ tag }) => tag === 'chatstate');
    const states = shown.map(({ content }) => Array.isArray(content) && content[0]?.tag);
    expect(states).toEqual([...Array.from({ length: 5 }, () => 'composing'), 'paused']);
  });
});

it(`${SENDS} messages over ${CUTS} cuts of the line reach the device, each under one id`, {
  timeout: 300_000,
}, async () => {
  const before = server.received.length;
  let seen = 0;
  let cuts = 0;
  const cut = new Set<string>();
  server.cuts = (id, at) => {
    if (at === 'before' && !cut.has(id)) seen += 1;
    // Each tenth message meets one: by turns before the server has taken it, and after, when only the acknowledgement is lost.
    const due = seen % (SENDS / CUTS) === 5 && cuts < CUTS && !cut.has(id);
    if (!due || at !== (cuts % 2 === 0 ? 'before' : 'after')) return false;
    cut.add(id);
    cuts += 1;
    return true;
  };
  const ids: string[] = [];
  for (let nth = 0; nth < SENDS; nth += 1) {
    const key = { 'idempotency-key': randomUUID() };
    const sent = await until(
      `message ${nth} is sent`,
      async () => {
        const answer = await call(
          'POST',
          '/message/sendText/phone',
          { number: ada.jid, text: `Message ${nth}` },
          key,
        );
        return answer.status === 201 && answer;
      },
      60_000,
    );
    ids.push(sent.body.key.id);
  }
  server.cuts = () => false;
  const got = server.received.slice(before).filter(({ by }) => by === ada.jid);
  expect(cuts).toBe(CUTS);
  // A phone shows one message for each id.
  expect([...new Set(got.map(({ id }) => id))]).toEqual(ids);
  const texts = new Map(
    got.map(({ id, message }) => [id, message.extendedTextMessage?.text ?? message.conversation]),
  );
  expect([...texts.values()]).toEqual(Array.from({ length: SENDS }, (_, nth) => `Message ${nth}`));
});

it('a version that WhatsApp refuses says so, and is mended by the setting alone', async () => {
  const wanted: [number, number, number] = [2, 3000, 1_099_999_999];
  server.refusesVersion = (version) => version.join() !== wanted.join();
  await gateway.close();
  gateway = await start({ whatsappVersion: [...OLD] });
  const refused = await until('it is refused', async () => {
    const instance = await stateOf('phone');
    return instance.state === 'close' && instance.reason && instance;
  });
  expect(refused.reason).toMatch(/WHATSAPP_VERSION/);
  await gateway.close();
  gateway = await start({ whatsappVersion: wanted });
  await until('it is open', async () => (await stateOf('phone')).state === 'open');
});

it('asked the server nothing that it does not know', () => {
  expect(server.unknown).toEqual([]);
});
