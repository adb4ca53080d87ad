/**
 * What a messaging gateway does on any network: one suite, run against every transport that can be run for real. It speaks
 * to the gateway by HTTP alone and looks at what arrives through peers, who are on the network and not in the gateway.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TransportKind } from 'soundpost-contract/gateway-instances';
import { fetch } from 'soundpost-testing/http';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { nativeNoteOf } from 'soundpost-testing/native-note';
import { receivedBody } from 'soundpost-testing/received-body';
import { until } from 'soundpost-testing/until';
import { Webhook } from 'standardwebhooks';
import { Client } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decrypted } from '../gateway/decrypted.ts';
import { type Answer, caller } from '../gateway/gateway-fixture.ts';

/** A network with people on it, and a gateway of the test's own that is connected to it. */
export interface NetworkUnderTest {
  readonly transport: TransportKind;
  /** Base address of the gateway; may change with a restart. */
  url(): string;
  /** The gateway's own key. */
  readonly apiKey: string;
  /** What `POST /instance/create` needs besides the name for an account that no instance has yet. */
  newAccount(): Promise<Readonly<Record<string, unknown>>>;
  /** Lets the instance connect and brings it together with its account, where that takes a person with a phone. */
  pair?(instance: string): Promise<void>;
  /**
   * Called once an instance of a new account is open: afterwards both peers are among its contacts, and it owns a
   * group in which `admin` is an admin and `member` is not.
   */
  furnish(instance: string): Promise<Furniture>;
  /** A number of the right form that nobody on the network has. */
  readonly nobody: string;
  /** Stops the gateway and starts it again on the same state. */
  restart(): Promise<void>;
  close(): Promise<void>;
  /** What the network as such has; the suite expects `not_editable` and no PLAYED where it has not. */
  readonly has: {
    readonly captions: boolean;
    readonly played: boolean;
    /** Whether it can be asked who exists; otherwise that shows when something is sent. */
    readonly directory: boolean;
  };
}

export interface Furniture {
  /** JID of the instance's own account. */
  readonly ownJid: string;
  readonly groupJid: string;
  readonly groupName: string;
  readonly admin: Peer;
  readonly member: Peer;
  /** Somebody who is neither in the group nor, at first, among the contacts. */
  readonly outsider: Peer;
}

/** Somebody on the network, as seen and steered from outside the gateway. Lists hold everything since the beginning, oldest first. */
export interface Peer {
  /** Digits, as a caller of the gateway writes them. */
  readonly number: string;
  readonly jid: string;
  /** As the instance's address book has it. */
  readonly name: string;
  /** What came from the instance, directly and in the group. */
  messages(): Promise<readonly Received[]>;
  /** `composing`, `recording`, `paused`, `available`, `unavailable` as the instance showed them to this peer. */
  presences(): Promise<readonly string[]>;
  /** Reads everything that came from the instance, so that its messages become READ. */
  read(): Promise<void>;
  /** Starts the player of a voice message; only on networks that have PLAYED. */
  play(messageId: string): Promise<void>;
  /** Writes to the instance, or to the group. Answers whether it was taken, which a blocked person's is not. */
  say(text: string, groupJid?: string): Promise<{ delivered: boolean }>;
  /** Offers a call to the instance. */
  call(): Promise<void>;
  /** How many of the messages that it wrote to the instance the instance has marked as read. */
  readByInstance(): Promise<number>;
  /** How many of its calls the instance has rejected. */
  rejectedCalls(): Promise<number>;
  /** Enters the group of an invitation. Answers whether the network let it in. */
  join(invite: { inviteUrl: string; inviteCode: string }): Promise<boolean>;
}

export interface Received {
  /** `key.id` of the send operation's answer; for an edit the id of the message that it changes. */
  readonly id: string;
  readonly kind: 'voice' | 'text' | 'edit' | 'invite';
  readonly inGroup: boolean;
  /** The text of texts, edits and invites. */
  readonly text?: string;
  readonly quotedId?: string;
  readonly mentioned: readonly string[];
  /** The sound of a voice message as the peer gets it: decrypted, if the network encrypts. */
  download?(): Promise<Buffer>;
}

/** @param outboundAllow the rule under which the gateway may reach the suite's own webhook receiver */
export type OpenNetwork = (outboundAllow: string) => Promise<NetworkUnderTest>;

const run = promisify(execFile);
const sha256Base64 = /^[A-Za-z0-9+/]{43}=$/;

/** @param waitMs how long something may take to come through on this network */
export function describeGateway(name: string, open: OpenNetwork, waitMs = 60_000): void {
  describe(`the gateway on ${name}`, () => {
    let network: NetworkUnderTest;
    let furniture: Furniture;
    let created: Answer;
    let folder: string;
    let audio: string;
    let foreign: string;
    let receiver: Server;
    let receiverUrl: string;
    const delivered: { headers: Record<string, string>; text: string }[] = [];

    const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      caller(network.url())(method, path, body, { apikey: network.apiKey, ...headers });
    const send = (body: object, headers?: Record<string, string>): Promise<Answer> =>
      call('POST', '/message/sendMessengerAudio/alpha', { audio, ...body }, headers);
    const wait = <T>(what: string, ask: () => Promise<T>) => until(what, ask, waitMs);
    const arrived = (peer: Peer, what: string, wanted: (message: Received) => boolean) =>
      wait(`${peer.name} gets ${what}`, async () => (await peer.messages()).find(wanted));
    const lastOf = async (jid: string): Promise<Answer['body']> =>
      (await call('POST', '/chat/findChats/alpha', { where: { remoteJid: jid } })).body[0]?.lastMessage;
    const statusOf = (jid: string, id: string, status: string) =>
      wait(`${id} becomes ${status}`, async () => {
        const last = await lastOf(jid);
        return last?.key.id === id && last.status === status;
      });
    const setSettings = (settings: object) => call('POST', '/settings/set/alpha', settings);
    const settle = async (to: Peer): Promise<string> => {
      const { body } = await send({ number: to.number });
      await arrived(to, 'a voice message', ({ id }) => id === body.key.id);
      return body.key.id;
    };

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'soundpost-suite-'));
      const tone = await cachedMedia('tone.wav', ['-f', 'lavfi', '-i', 'sine=frequency=500:duration=2']);
      foreign = (await readFile(tone)).toString('base64');
      // What phones make themselves is looked into once; that other sound becomes it is shown once, below.
      audio = (await readFile(await nativeNoteOf(tone))).toString('base64');
      receiver = createServer(async (request, response) => {
        const body = await receivedBody(request);
        if (body === undefined) return;
        const text = body.toString();
        delivered.push({ headers: request.headers as Record<string, string>, text });
        response.writeHead(204).end();
      });
      receiver.listen(0, '127.0.0.1');
      await once(receiver, 'listening');
      const { port } = receiver.address() as AddressInfo;
      receiverUrl = `http://127.0.0.1:${port}/events`;
      network = await open(`127.0.0.1:${port}`);
      const account = await network.newAccount();
      created = await call('POST', '/instance/create', { instanceName: 'alpha', ...account });
      await network.pair?.('alpha');
      await wait('alpha is open', async () => {
        const { body } = await call('GET', '/instance/connectionState/alpha');
        return body.instance?.state === 'open';
      });
      furniture = await network.furnish('alpha');
    });

    afterAll(async () => {
      await network?.close();
      receiver.close();
      await rm(folder, { recursive: true, force: true });
    });

    describe('an instance', () => {
      it('is created with its token and its settings', () => {
        expect(created.status).toBe(201);
        expect(created.body).toEqual({
          instance: {
            instanceName: 'alpha',
            instanceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
            transport: network.transport,
            status: expect.stringMatching(network.pair ? /^close$/ : /^(open|connecting)$/),
          },
          hash: expect.any(String),
          settings: {
            reject_call: false,
            groups_ignore: false,
            always_online: false,
            read_messages: false,
            read_status: true,
            sync_full_history: false,
          },
        });
      });

      it('is listed without its token', async () => {
        const { status, body } = await call('GET', '/instance/fetchInstances');
        expect(status).toBe(200);
        expect(body).toContainEqual(expect.objectContaining({ ...created.body.instance, status: 'open' }));
        expect(JSON.stringify(body)).not.toContain(created.body.hash);
      });

      it('tells its state, by name and by id', async () => {
        for (const named of ['alpha', created.body.instance.instanceId]) {
          const { status, body } = await call('GET', `/instance/connectionState/${named}`);
          expect(status).toBe(200);
          expect(body).toEqual({ instance: { instanceName: 'alpha', state: 'open' } });
        }
      });

      it('has a name of its own', async () => {
        const { status, body } = await call('POST', '/instance/create', {
          instanceName: 'alpha',
          ...(await network.newAccount()),
        });
        expect([status, body.code]).toEqual([409, 'name_in_use']);
      });

      it('opens to its own token, which opens nothing else', async () => {
        const token = { apikey: created.body.hash };
        expect((await call('POST', '/chat/findContacts/alpha', {}, token)).status).toBe(200);
        for (const path of ['/chat/findContacts/beta', '/instance/create']) {
          const { status, body } = await call('POST', path, {}, token);
          expect([status, body.code]).toEqual([401, 'unauthorized']);
        }
        expect((await call('POST', '/chat/findContacts/alpha', {}, { apikey: 'no key at all' })).status).toBe(
          401,
        );
      });
    });

    describe('sending audio', () => {
      it('answers the message that is on its way', async () => {
        const { status, body } = await send({ number: furniture.admin.number });
        expect(status).toBe(200);
        expect(body).toEqual({
          key: { remoteJid: furniture.admin.jid, fromMe: true, id: expect.any(String) },
          message: {
            audioMessage: {
              url: expect.stringMatching(/^http/),
              mimetype: 'audio/ogg; codecs=opus',
              fileSha256: expect.stringMatching(sha256Base64),
              fileLength: expect.stringMatching(/^\d+$/),
              seconds: 2,
              ptt: true,
              mediaKey: expect.stringMatching(sha256Base64),
              fileEncSha256: expect.stringMatching(sha256Base64),
              directPath: expect.stringMatching(/^\/media\//),
              mediaKeyTimestamp: expect.stringMatching(/^\d{10}$/),
              waveform: expect.stringMatching(/^[A-Za-z0-9+/]{86}==$/),
            },
          },
          messageTimestamp: expect.stringMatching(/^\d{10}$/),
          status: 'PENDING',
        });
      });

      it('arrives as a voice note that any player takes, byte for byte the one that the answer names', async () => {
        const { body } = await send({ number: furniture.admin.number, audio: foreign });
        const message = await arrived(furniture.admin, 'it', ({ id }) => id === body.key.id);
        expect(message).toMatchObject({ kind: 'voice', inGroup: false });
        const bytes = (await message.download?.()) ?? Buffer.alloc(0);
        const { url, mediaKey, fileSha256, fileEncSha256, fileLength } = body.message.audioMessage;
        const kept = Buffer.from(await (await fetch(url)).arrayBuffer());
        const opened = decrypted(kept, mediaKey);
        expect(opened).toMatchObject({ macMatches: true, fileSha256, fileEncSha256 });
        expect(bytes.equals(opened.plain)).toBe(true);
        expect(bytes.length).toBe(Number(fileLength));
        const file = join(folder, 'arrived.ogg');
        await writeFile(file, bytes);
        const { stdout } = await run('ffprobe', [
          ...['-v', 'error', '-show_streams', '-show_format', '-of', 'json'],
          file,
        ]);
        const { streams, format } = JSON.parse(stdout);
        expect(streams).toHaveLength(1);
        expect(streams[0]).toMatchObject({ codec_name: 'opus', channels: 1, sample_rate: '48000' });
        expect(format.format_name).toBe('ogg');
        expect(Number(format.duration)).toBeCloseTo(2, 1);
      });

      it.for([
        ['an integer', (peer: Peer) => Number(peer.number)],
        [
          'punctuation',
          (peer: Peer) =>
            `+${peer.number.slice(0, 1)} (${peer.number.slice(1, 4)}) ${peer.number.slice(4, 6)}-${peer.number.slice(6)}`,
        ],
        ['the JID of its network', (peer: Peer) => peer.jid],
        ['a JID of another network with its device', (peer: Peer) => `${peer.number}:12@c.us`],
      ] as const)('takes the number as %s', async ([, write]) => {
        const { status, body } = await send({ number: write(furniture.admin) });
        expect([status, body.key?.remoteJid]).toEqual([200, furniture.admin.jid]);
      });

      it('answers under the other brand, and ignores fields that it does not know', async () => {
        const { status } = await call('POST', '/message/sendWhatsAppAudio/alpha', {
          number: furniture.admin.number,
          audio,
          encoding: true,
          fileName: 'a.mp3',
          mimetype: 'audio/mpeg',
        });
        expect(status).toBe(200);
      });

      it('reaches everybody in a group', async () => {
        const { status, body } = await send({ number: furniture.groupJid });
        expect([status, body.key?.remoteJid]).toEqual([200, furniture.groupJid]);
        for (const peer of [furniture.admin, furniture.member]) {
          expect(await arrived(peer, 'it in the group', ({ id }) => id === body.key.id)).toMatchObject({
            kind: 'voice',
            inGroup: true,
          });
        }
      });

      it('quotes an earlier message; an unknown one is no error', async () => {
        const first = await settle(furniture.admin);
        const quoted = { key: { id: first }, message: { conversation: 'Listen to this' } };
        const { body } = await send({ number: furniture.admin.number, quoted });
        const message = await arrived(furniture.admin, 'the answer', ({ id }) => id === body.key.id);
        expect(message.quotedId).toBe(first);
        const unknown = await send({ number: furniture.admin.number, quoted: { key: { id: 'NOBODY' } } });
        expect(unknown.status).toBe(200);
      });

      it('mentions whom it names, and everybody when asked', async () => {
        const one = await send({ number: furniture.groupJid, mentioned: [furniture.member.number] });
        const all = await send({ number: furniture.groupJid, mentionsEveryOne: true });
        const first = await arrived(furniture.member, 'the first', ({ id }) => id === one.body.key.id);
        expect(first.mentioned).toEqual([furniture.member.jid]);
        const second = await arrived(furniture.member, 'the second', ({ id }) => id === all.body.key.id);
        expect(second.mentioned).toEqual(expect.arrayContaining([furniture.admin.jid, furniture.member.jid]));
      });

      it('shows that it records for as long as the delay, and then no more', async () => {
        const before = (await furniture.admin.presences()).length;
        const startedAt = performance.now();
        const sending = send({ number: furniture.admin.number, delay: 700 });
        const since = async () => (await furniture.admin.presences()).slice(before);
        await wait('the presence shows', async () =>
          (await since()).some((p) => p === 'recording' || p === 'composing'),
        );
        const { status } = await sending;
        expect(status).toBe(200);
        expect(performance.now() - startedAt).toBeGreaterThanOrEqual(700);
        await wait('the presence ends', async () => (await since()).includes('paused'));
      });

      it('keeps the order of a burst', async () => {
        // Over one connection, none waiting for an answer: each has come before the next one. The slowest is the first.
        const client = new Client(network.url(), { pipelining: 6 });
        const sent = [600, 0, 0, 0, 0, 0].map(async (delay): Promise<Answer['body']> => {
          const { body } = await client.request({
            method: 'POST',
            path: '/message/sendMessengerAudio/alpha',
            headers: { apikey: network.apiKey, 'content-type': 'application/json' },
            body: JSON.stringify({ audio, number: furniture.admin.number, delay }),
            idempotent: true,
            blocking: false,
          });
          return body.json();
        });
        const ids = (await Promise.all(sent)).map(({ key }) => key.id);
        await client.close();
        const got = await wait('all six', async () => {
          const came = (await furniture.admin.messages())
            .map(({ id }) => id)
            .filter((id) => ids.includes(id));
          return came.length === ids.length && came;
        });
        expect(got).toEqual(ids);
      });

      it('sends once for one Idempotency-Key', async () => {
        const key = { 'Idempotency-Key': randomBytes(8).toString('hex') };
        const first = await send({ number: furniture.admin.number }, key);
        const again = await send({ number: furniture.admin.number }, key);
        expect(again.body).toEqual(first.body);
        const other = await send({ number: furniture.member.number }, key);
        expect([other.status, other.body.code]).toEqual([422, 'idempotency_mismatch']);
        const marker = await settle(furniture.admin);
        const ids = (await furniture.admin.messages()).map(({ id }) => id);
        expect(ids).toContain(marker);
        expect(ids.filter((id) => id === first.body.key.id)).toHaveLength(1);
      });

      it.for([
        ['unknown_recipient', () => ({ number: network.nobody })],
        [
          'not_audio',
          () => ({ number: furniture.admin.number, audio: Buffer.from('words').toString('base64') }),
        ],
        ['audio_unreachable', () => ({ number: furniture.admin.number, audio: 'http://127.0.0.1:9/a.mp3' })],
      ] as const)('refuses with %s', async ([code, body]) => {
        const answer = await send(body());
        expect([answer.status, answer.body.code]).toEqual([400, code]);
        expect(answer.body).toEqual({
          status: 400,
          error: 'Bad Request',
          code,
          requestId: expect.any(String),
          response: { message: [expect.stringMatching(/^(number|audio): /)] },
        });
      });
    });

    describe('the status of a message', () => {
      it('comes to READ when the other side has read it', async () => {
        const id = await settle(furniture.admin);
        await statusOf(furniture.admin.jid, id, 'DELIVERY_ACK');
        await furniture.admin.read();
        await statusOf(furniture.admin.jid, id, 'READ');
      });

      it('comes to PLAYED when the other side plays it, where the network tells', async () => {
        const id = await settle(furniture.admin);
        if (!network.has.played) {
          await furniture.admin.read();
          await statusOf(furniture.admin.jid, id, 'READ');
          return;
        }
        await furniture.admin.play(id);
        await statusOf(furniture.admin.jid, id, 'PLAYED');
      });
    });

    describe('settings', () => {
      it('are set one by one; the answer always carries the six', async () => {
        const first = await setSettings({ groupsIgnore: true, msgCall: 'Please write.' });
        expect(first.status).toBe(201);
        expect(first.body).toEqual({
          settings: {
            instanceName: 'alpha',
            settings: {
              reject_call: false,
              groups_ignore: true,
              always_online: false,
              read_messages: false,
              read_status: true,
              sync_full_history: false,
            },
          },
        });
        const second = await setSettings({ groupsIgnore: false, unknown: 1 });
        expect(second.body.settings.settings.groups_ignore).toBe(false);
        const wrong = await setSettings({ rejectCall: 'perhaps' });
        expect([wrong.status, wrong.body.code]).toEqual([400, 'bad_request']);
      });

      it('rejectCall rejects a call and says msgCall', async () => {
        await setSettings({ rejectCall: true, msgCall: 'I cannot talk, please write.' });
        await furniture.admin.call();
        await wait('the call is rejected', async () => (await furniture.admin.rejectedCalls()) === 1);
        await arrived(furniture.admin, 'the text', ({ text }) => text === 'I cannot talk, please write.');
        await setSettings({ rejectCall: false });
      });

      it('readMessages tells the author that a message was read', async () => {
        await setSettings({ readMessages: true });
        const before = await furniture.admin.readByInstance();
        await furniture.admin.say('Did you see this?');
        await wait('it is marked as read', async () => (await furniture.admin.readByInstance()) > before);
        await setSettings({ readMessages: false });
      });

      it('groupsIgnore drops what is said in groups, and nothing else', async () => {
        await setSettings({ groupsIgnore: true });
        const before = await lastOf(furniture.groupJid);
        await furniture.admin.say('Hello everybody', furniture.groupJid);
        await furniture.admin.say('Hello you');
        await wait('the direct one came', async () => {
          const last = await lastOf(furniture.admin.jid);
          return last?.message.conversation === 'Hello you';
        });
        expect(await lastOf(furniture.groupJid)).toEqual(before);
        await setSettings({ groupsIgnore: false });
        await furniture.admin.say('Hello again', furniture.groupJid);
        await wait('the next one came', async () => {
          const last = await lastOf(furniture.groupJid);
          return last?.message.conversation === 'Hello again';
        });
      });

      it('alwaysOnline shows the instance as there', async () => {
        const before = (await furniture.admin.presences()).length;
        await setSettings({ alwaysOnline: true });
        await wait('it is there', async () =>
          (await furniture.admin.presences()).slice(before).includes('available'),
        );
        await setSettings({ alwaysOnline: false });
      });

      it('readStatus false keeps what the other side does to itself', async () => {
        await setSettings({ readStatus: false });
        const id = await settle(furniture.admin);
        await statusOf(furniture.admin.jid, id, 'DELIVERY_ACK');
        await furniture.admin.read();
        await furniture.admin.say('I have read it');
        await wait('what came after', async () => {
          const last = await lastOf(furniture.admin.jid);
          return last?.message.conversation === 'I have read it';
        });
        const { body } = await call(
          'GET',
          `/inbox/api/instances/alpha/chats/${encodeURIComponent(furniture.admin.jid)}/messages`,
        );
        expect(body.find(({ key }: { key: { id: string } }) => key.id === id)?.status).toBe('DELIVERY_ACK');
        await setSettings({ readStatus: true });
      });
    });

    describe('changing a message', () => {
      const update = (body: object) => call('POST', '/chat/updateMessage/alpha', body);

      it('changes a text, and answers nothing', async () => {
        await setSettings({ rejectCall: true, msgCall: 'Not now' });
        await furniture.admin.call();
        const text = await arrived(furniture.admin, 'the text', (message) => message.text === 'Not now');
        await setSettings({ rejectCall: false });
        const key = { remoteJid: furniture.admin.jid, fromMe: true, id: text.id };
        const answer = await update({ number: Number(furniture.admin.number), text: 'Not today', key });
        expect([answer.status, answer.body]).toEqual([200, '']);
        const edit = await arrived(
          furniture.admin,
          'the change',
          ({ kind, id }) => kind === 'edit' && id === text.id,
        );
        expect(edit.text).toBe('Not today');
      });

      it('gives a voice message a caption where the network can, and else refuses', async () => {
        const id = await settle(furniture.admin);
        const key = { remoteJid: furniture.admin.jid, fromMe: true, id };
        const answer = await update({ number: furniture.admin.number, text: 'A tone', key });
        if (!network.has.captions) {
          expect([answer.status, answer.body.code]).toEqual([400, 'not_editable']);
          return;
        }
        expect([answer.status, answer.body]).toEqual([200, '']);
        await arrived(
          furniture.admin,
          'the caption',
          (m) => m.kind === 'edit' && m.id === id && m.text === 'A tone',
        );
        expect((await lastOf(furniture.admin.jid)).message.audioMessage.caption).toBe('A tone');
      });

      it('knows only the messages of the chat', async () => {
        const id = await settle(furniture.admin);
        const foreign = { remoteJid: furniture.member.jid, fromMe: true, id };
        for (const body of [
          { number: furniture.member.number, text: 'x', key: foreign },
          { number: furniture.admin.number, text: 'x', key: { ...foreign, id: 'NOBODY' } },
        ]) {
          const answer = await update(body);
          expect([answer.status, answer.body.code]).toEqual([404, 'message_not_found']);
        }
      });

      it('leaves the messages of others alone', async () => {
        await furniture.admin.say('These are my words');
        const last = await wait('they came', async () => {
          const candidate = await lastOf(furniture.admin.jid);
          return candidate?.message.conversation === 'These are my words' && candidate;
        });
        const answer = await update({ number: furniture.admin.number, text: 'x', key: last.key });
        expect([answer.status, answer.body.code]).toEqual([400, 'not_editable']);
      });

      it('names every field that is missing', async () => {
        const { status, body } = await update({});
        expect([status, body.code]).toEqual([400, 'bad_request']);
        const fields = body.response.message.map((message: string) => message.split(':')[0]).toSorted();
        expect(fields).toEqual(['key', 'number', 'text']);
      });
    });

    describe('groups', () => {
      const group = (jid: string) => `groupJid=${encodeURIComponent(jid)}`;
      const inviteCode = () => call('GET', `/group/inviteCode/alpha?${group(furniture.groupJid)}`);

      it('list their members with their rank', async () => {
        const { status, body } = await call('GET', `/group/participants/alpha?${group(furniture.groupJid)}`);
        expect(status).toBe(200);
        expect(body.participants).toEqual(
          expect.arrayContaining([
            { id: furniture.ownJid, admin: 'superadmin', name: expect.any(String) },
            { id: furniture.admin.jid, admin: 'admin', name: expect.any(String) },
            { id: furniture.member.jid, admin: null, name: expect.any(String) },
          ]),
        );
      });

      it('have a code; one that was revoked lets nobody in', async () => {
        const first = await inviteCode();
        expect(first.status).toBe(200);
        expect(first.body).toEqual({ inviteUrl: expect.any(String), inviteCode: expect.any(String) });
        expect(first.body.inviteUrl).toContain(first.body.inviteCode);
        expect((await inviteCode()).body).toEqual(first.body);
        const renewed = await call('POST', `/group/revokeInviteCode/alpha?${group(furniture.groupJid)}`);
        expect(renewed.status).toBe(201);
        expect(renewed.body.inviteCode).not.toBe(first.body.inviteCode);
        expect((await inviteCode()).body.inviteCode).toBe(renewed.body.inviteCode);
        expect(await furniture.outsider.join(first.body)).toBe(false);
      });

      it('are entered by whoever was sent an invitation', async () => {
        const { status, body } = await call('POST', '/group/sendInvite/alpha', {
          groupJid: furniture.groupJid,
          description: 'Come and listen',
          numbers: [furniture.outsider.number],
        });
        expect(status).toBe(200);
        expect(body).toEqual({ send: true, inviteUrl: expect.any(String) });
        const invite = await arrived(furniture.outsider, 'the invitation', ({ kind }) => kind === 'invite');
        expect(invite.text).toContain('Come and listen');
        expect(invite.text).toContain(body.inviteUrl);
        const { inviteCode: code } = (await inviteCode()).body;
        expect(await furniture.outsider.join({ inviteUrl: body.inviteUrl, inviteCode: code })).toBe(true);
      });

      it('invite nobody when one of the numbers is unknown', async () => {
        const count = (await furniture.admin.messages()).length;
        const { status, body } = await call('POST', '/group/sendInvite/alpha', {
          groupJid: furniture.groupJid,
          description: 'Come',
          numbers: [furniture.admin.number, network.nobody],
        });
        expect([status, body.code]).toEqual([400, 'unknown_recipient']);
        if (!network.has.directory) {
          return;
        }
        expect(body.response.message[0]).toMatch(/^numbers\[1\]: /);
        await settle(furniture.admin);
        expect(await furniture.admin.messages()).toHaveLength(count + 1);
      });

      it.for(['inviteCode', 'participants'])(
        '%s asks for a group that the instance is in',
        async (operation) => {
          const missing = await call('GET', `/group/${operation}/alpha`);
          expect([missing.status, missing.body.code]).toEqual([400, 'bad_request']);
          expect(missing.body.response.message[0]).toMatch(/^groupJid: /);
          for (const jid of ['120363999999999999@g.us', furniture.admin.jid]) {
            const answer = await call('GET', `/group/${operation}/alpha?${group(jid)}`);
            expect([answer.status, answer.body.code]).toEqual([404, 'group_not_found']);
          }
        },
      );
    });

    describe('presence', () => {
      const presence = (body: object) => call('POST', '/chat/sendPresence/alpha', body);

      it('is shown at once and ends after the delay', async () => {
        const before = (await furniture.member.presences()).length;
        const answer = await presence({ number: furniture.member.number, delay: 400 });
        expect([answer.status, answer.body]).toEqual([201, '']);
        const since = async () => (await furniture.member.presences()).slice(before);
        await wait('composing, then paused', async () => {
          const seen = await since();
          return seen.includes('composing') && seen.at(-1) === 'paused';
        });
      });

      it('may stand inside options', async () => {
        const before = (await furniture.member.presences()).length;
        const answer = await presence({
          options: { number: furniture.member.number, delay: '100', presence: 'composing' },
        });
        expect(answer.status).toBe(201);
        await wait('it shows', async () => (await furniture.member.presences()).length >= before + 2);
      });

      it.for([
        ['an unknown word', { presence: 'dancing' }],
        ['a delay below 0', { delay: -1 }],
        ['nobody', { number: undefined }],
      ] as const)('refuses %s', async ([, body]) => {
        const answer = await presence({ number: furniture.member.number, ...body });
        expect([answer.status, answer.body.code]).toEqual([400, 'bad_request']);
      });
    });

    describe('blocking', () => {
      const path = '/message/updateBlockStatus/alpha';

      it('keeps a contact away until it is unblocked', async () => {
        const { member } = furniture;
        const blocked = async () =>
          (await call('POST', '/chat/findContacts/alpha', { where: { id: member.jid } })).body[0].blocked;
        const answer = await call('POST', path, { number: member.number, status: 'block' });
        expect([answer.status, answer.body]).toEqual([201, '']);
        expect(await blocked()).toBe(true);
        expect(await member.say('Can you hear me?')).toEqual({ delivered: false });
        await call('POST', path, { number: Number(member.number), status: 'unblock' });
        expect(await blocked()).toBe(false);
        expect(await member.say('And now?')).toEqual({ delivered: true });
        await wait('it came', async () => (await lastOf(member.jid))?.message.conversation === 'And now?');
      });

      it('takes block and unblock only, for people only', async () => {
        const wrong = await call('POST', path, { number: furniture.member.number, status: 'mute' });
        expect([wrong.status, wrong.body.code]).toEqual([400, 'bad_request']);
        const group = await call('POST', path, { number: furniture.groupJid, status: 'block' });
        expect([group.status, group.body.code]).toEqual([400, 'bad_request']);
      });
    });

    describe('contacts', () => {
      const find = async (body?: unknown): Promise<Answer['body']> =>
        (await call('POST', '/chat/findContacts/alpha', body)).body;

      it('list people and groups, and not the account itself', async () => {
        const { status, body } = await call('POST', '/chat/findContacts/alpha', {});
        expect(status).toBe(200);
        const record = (jid: string, pushName: string, isGroup: boolean) => ({
          id: jid,
          remoteJid: jid,
          pushName,
          profilePicUrl: null,
          isGroup,
          isSaved: true,
          blocked: false,
        });
        expect(body).toContainEqual(record(furniture.admin.jid, furniture.admin.name, false));
        expect(body).toContainEqual(record(furniture.member.jid, furniture.member.name, false));
        expect(body).toContainEqual(record(furniture.groupJid, furniture.groupName, true));
        expect(body.map(({ id }: { id: string }) => id)).not.toContain(furniture.ownJid);
      });

      it('are found by JID, by number and by the JID of another network', async () => {
        const { jid, number } = furniture.admin;
        for (const where of [
          { id: jid },
          { remoteJid: jid },
          { id: number },
          { id: `${number}@s.whatsapp.net` },
          { id: jid, remoteJid: jid },
        ]) {
          expect((await find({ where })).map(({ id }: { id: string }) => id)).toEqual([jid]);
        }
        expect(await find({ where: { id: network.nobody } })).toEqual([]);
        expect(await find({ where: { id: 'cm4rjmbw00000kz5o1p2q3r4s' } })).toEqual([]);
        expect(await find({ where: { id: `${number}@g.us` } })).toEqual([]);
      });

      it('come in pages when asked', async () => {
        const all = await find();
        expect(await find({ page: 2, offset: 1 })).toEqual([all[1]]);
        expect(await find({ offset: 2 })).toEqual(all.slice(0, 2));
        expect(await find({ page: 9, offset: 50 })).toEqual([]);
        const wrong = await call('POST', '/chat/findContacts/alpha', { page: 0 });
        expect([wrong.status, wrong.body.code]).toEqual([400, 'bad_request']);
      });
    });

    describe('chats', () => {
      it('stand in the order of their last messages, without any body in the request', async () => {
        await settle(furniture.member);
        const id = await settle(furniture.admin);
        const { status, body } = await call('POST', '/chat/findChats/alpha');
        expect(status).toBe(200);
        expect(body.slice(0, 2).map((chat: { remoteJid: string }) => chat.remoteJid)).toEqual([
          furniture.admin.jid,
          furniture.member.jid,
        ]);
        expect(body[0]).toEqual({
          id: furniture.admin.jid,
          remoteJid: furniture.admin.jid,
          pushName: furniture.admin.name,
          isGroup: false,
          updatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
          unreadCount: expect.any(Number),
          lastMessage: {
            key: { remoteJid: furniture.admin.jid, fromMe: true, id },
            pushName: null,
            message: { audioMessage: expect.objectContaining({ seconds: 2 }) },
            messageType: 'audioMessage',
            messageTimestamp: expect.stringMatching(/^\d{10}$/),
            status: expect.any(String),
          },
        });
        expect(body.map((chat: { remoteJid: string }) => chat.remoteJid)).toContain(furniture.groupJid);
      });

      it('count what came and was not read', async () => {
        const unread = async (): Promise<number> =>
          (await call('POST', '/chat/findChats/alpha', { where: { id: furniture.member.jid } })).body[0]
            .unreadCount;
        const before = await unread();
        await furniture.member.say('One');
        await furniture.member.say('Two');
        await wait('both are counted', async () => (await unread()) === before + 2);
      });
    });

    it('privacy settings are six words', async () => {
      const { status, body } = await call('GET', '/chat/fetchPrivacySettings/alpha');
      expect(status).toBe(200);
      const audience = expect.stringMatching(/^(all|contacts|contact_blacklist|none)$/);
      expect(body).toEqual({
        readreceipts: audience,
        profile: audience,
        status: audience,
        online: expect.stringMatching(/^(all|match_last_seen)$/),
        last: audience,
        groupadd: audience,
      });
    });

    describe('a webhook', () => {
      it('gets the events that it asked for, signed with its secret', async () => {
        const { status, body } = await call('POST', '/webhook/set/alpha', {
          webhook: {
            enabled: true,
            url: receiverUrl,
            headers: { 'X-Mine': 'yes' },
            events: ['MESSAGES_UPSERT', 'messages.update'],
          },
        });
        expect(status).toBe(201);
        const { secret } = body.webhook;
        expect(secret).toMatch(/^whsec_/);
        await furniture.admin.say('For the webhook');
        const event = await wait('the message is told', async () =>
          delivered.find(({ text }) => text.includes('For the webhook')),
        );
        expect(new Webhook(secret).verify(event.text, event.headers)).toMatchObject({
          event: 'messages.upsert',
          instance: 'alpha',
          sender: furniture.ownJid,
          data: {
            key: { remoteJid: furniture.admin.jid, fromMe: false },
            message: { conversation: 'For the webhook' },
          },
        });
        expect(event.headers['x-mine']).toBe('yes');
        const id = await settle(furniture.admin);
        await wait('its delivery is told', async () =>
          delivered.some(({ text }) => {
            const { event: name, data } = JSON.parse(text);
            return name === 'messages.update' && data.key.id === id && data.status === 'DELIVERY_ACK';
          }),
        );
      });
    });

    describe('later', () => {
      it('the status of a message goes on after a restart, and settings and tokens are what they were', async () => {
        await setSettings({ msgCall: 'Still here', rejectCall: true });
        const id = await settle(furniture.admin);
        await network.restart();
        await wait('alpha is open again', async () => {
          const { body } = await call('GET', '/instance/connectionState/alpha', undefined, {
            apikey: created.body.hash,
          });
          return body.instance?.state === 'open';
        });
        await furniture.admin.read();
        await statusOf(furniture.admin.jid, id, 'READ');
        const { body } = await setSettings({});
        expect(body.settings.settings.reject_call).toBe(true);
        await furniture.member.call();
        await arrived(furniture.member, 'the text', ({ text }) => text === 'Still here');
        await setSettings({ rejectCall: false });
      });

      it('an instance that is logged out sends nothing until it connects', async () => {
        const out = await call('DELETE', '/instance/logout/alpha');
        expect(out.status).toBe(200);
        expect(out.body).toEqual({
          status: 'SUCCESS',
          error: false,
          response: { message: expect.any(String) },
        });
        const state = async () => (await call('GET', '/instance/connectionState/alpha')).body.instance.state;
        expect(await state()).toBe('close');
        const refused = await send({ number: furniture.admin.number });
        expect([refused.status, refused.body.code]).toEqual([503, 'not_connected']);
        const back = await call('GET', '/instance/connect/alpha');
        expect(back.status).toBe(200);
        // An account that was left has to be paired anew.
        expect(back.body).toMatchObject(
          network.pair ? { count: 1 } : { instance: { instanceName: 'alpha' } },
        );
        await network.pair?.('alpha');
        await wait('it is open', async () => (await state()) === 'open');
        expect((await send({ number: furniture.admin.number })).status).toBe(200);
      });

      it('a deleted instance is gone', async () => {
        const { status, body } = await call('DELETE', '/instance/delete/alpha');
        expect(status).toBe(200);
        expect(body).toEqual({ status: 'SUCCESS', error: false, response: { message: expect.any(String) } });
        const after = await call('GET', '/instance/connectionState/alpha');
        expect([after.status, after.body.code]).toEqual([404, 'instance_not_found']);
        const token = await call('GET', '/instance/connectionState/alpha', undefined, {
          apikey: created.body.hash,
        });
        expect(token.status).toBe(401);
      });
    });
  });
}
