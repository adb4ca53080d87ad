/** Requests come to the replica that has the instance, whichever they were sent to. */
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TICKET_HEADER, Tickets } from '../../../src/gateway/replicas/ticket.ts';
import { startTestRedis, type TestRedis } from '../../redis-server.ts';
import { until } from '../../until.ts';
import { type FeedEvent, followFeed } from '../feed.ts';
import { API_KEY, ada, chatMessages, hedy, makeFolder, makeTone, REPLICA_KEY } from '../gateway-fixture.ts';
import { type Replica, type Replicas, replicasOn } from './replica-processes.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let replicas: Replicas;
let owner: Replica;
let other: Replica;
let tone: Buffer;
let audio: string;
const SEND = '/message/sendMessengerAudio/main';

/** Ids of what was told to the instance's webhook. */
const told: string[] = [];
let hooks = '';
const receiver = createServer((incoming, response) => {
  told.push(String(incoming.headers['webhook-id']));
  incoming.resume();
  response.writeHead(204).end();
});

beforeAll(async () => {
  [redis, folder] = await Promise.all([startTestRedis(), makeFolder()]);
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  tone = await readFile(join(folder.path, 'tone.ogg'));
  audio = tone.toString('base64');
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  hooks = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  replicas = replicasOn(redis, { dataDir: folder.path, outboundAllow: hooks });
  // Nothing is about a lease here: one that no stall of the machine outlasts.
  const replica = { timing: { leaseMs: 60_000 } };
  owner = await replicas.start({ replica });
  other = await replicas.start({ replica });
  expect(await replicas.ownerOf('main')).toBe(owner);
}, 60_000);

afterAll(async () => {
  receiver.close();
  await replicas.close();
  await redis.close();
  await folder.remove();
});

it('a send is taken anywhere, as JSON and as a form, and a repetition of it anywhere else is the same', async () => {
  const sent = await other.call('POST', SEND, { number: ada.number, audio }, { 'Idempotency-Key': 'one' });
  expect(sent.status).toBe(200);
  for (const replica of [owner, other]) {
    const again = await replica.call(
      'POST',
      SEND,
      { number: ada.number, audio },
      { 'Idempotency-Key': 'one' },
    );
    expect(again.body).toEqual(sent.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  }
  const form = new FormData();
  form.append('number', ada.number);
  form.append('file', new Blob([Uint8Array.from(tone)]), 'tone.ogg');
  const uploaded = await other.call('POST', SEND, form);
  expect(uploaded.status).toBe(200);
  for (const replica of [owner, other]) {
    const ids = (await chatMessages(replica, 'main', ada.jid)).map(({ key }) => key.id);
    expect(ids).toEqual([sent.body.key.id, uploaded.body.key.id]);
  }
});

// Broken by hand (src/gateway/replicas/forwarding.ts): everything done where it arrives. Refused with 503, since the other replica
// does not have the instance.
it('every operation and every page of the inbox works with the other replica', async () => {
  for (const replica of [owner, other]) {
    const { call } = replica;
    const [state, contacts, chats, listed, shown, people] = await Promise.all([
      call('GET', '/instance/connectionState/main'),
      call('POST', '/chat/findContacts/main'),
      call('POST', '/chat/findChats/main'),
      call('GET', '/instance/fetchInstances'),
      call('GET', '/inbox/api/instances'),
      call('GET', `/inbox/api/instances/main/chats/${ada.jid}/people`),
    ]);
    expect(state.body.instance.state).toBe('open');
    expect(contacts.body).toHaveLength(4);
    expect(chats.body[0].remoteJid).toBe(ada.jid);
    expect(listed.body).toMatchObject([{ instanceName: 'main', status: 'open' }]);
    expect(shown.body).toMatchObject([
      { state: 'open', ownJid: '99900000001@people.loopback', readOnly: false },
    ]);
    expect(people.body).toMatchObject([{ jid: ada.jid }]);
  }
  const { status, body } = await other.call('POST', '/settings/set/main', { readMessages: true });
  expect([status, body.settings.settings.read_messages]).toEqual([201, true]);
  const privacy = await other.call('GET', '/chat/fetchPrivacySettings/main');
  expect(privacy.body.readreceipts).toBe('all');
  await owner.call('POST', '/settings/set/main', { readMessages: false });
});

it('errors come through as they are, with the id under which both logs speak of the request', async () => {
  const refused = await other.call('POST', SEND, { number: '4930111', audio });
  expect([refused.status, refused.body.code]).toEqual([400, 'unknown_recipient']);
  expect(refused.headers.get('x-request-id')).toBe(refused.body.requestId);
  const stranger = await other.call('POST', SEND, { number: ada.number, audio }, { apikey: 'x'.repeat(20) });
  expect(stranger.status).toBe(401);
});

it('a change leaves one record for the audit, where it was made, with the address of the caller', async () => {
  const records = ({ log }: Replica): string[] =>
    log()
      .split('\n')
      .filter((line) => line.includes('"audit":true') && line.includes('/chat/sendPresence/'));
  const body = { number: ada.number, presence: 'composing', delay: 0 };
  const { headers } = await other.call('POST', '/chat/sendPresence/main', body);
  await until('the record', () => records(owner).length > 0);
  await other.call('GET', '/health/live');
  expect(records(other)).toEqual([]);
  expect(records(owner).map((line) => JSON.parse(line))).toMatchObject([
    { address: '127.0.0.1', requestId: headers.get('x-request-id'), outcome: 201 },
  ]);
});

it('messages keep their order, whichever replica they are handed to', async () => {
  const events: FeedEvent[] = [];
  const stop = await followFeed(other.url, (event) => events.push(event));
  const first = other.call('POST', SEND, { number: hedy.number, audio, delay: 700 });
  const isRecording = ({ event, envelope }: FeedEvent): boolean =>
    event === 'presence.update' && JSON.stringify(envelope.data.presences).includes('recording');
  await until('the first to be on its way', () => events.some(isRecording));
  const second = owner.call('POST', SEND, { number: hedy.number, audio });
  const third = other.call('POST', SEND, { number: hedy.number, audio });
  const sent = await Promise.all([first, second, third]);
  stop();
  const ids = (await chatMessages(other, 'main', hedy.jid)).map(({ key }) => key.id);
  expect(ids.indexOf(sent[0].body.key.id)).toBe(0);
  expect(ids.toSorted()).toEqual(sent.map(({ body }) => body.key.id).toSorted());
});

it('what happens to an instance is shown live by each replica, and told to its webhook once', async () => {
  const feeds: FeedEvent[][] = [[], []];
  const stops = await Promise.all(
    [owner, other].map(({ url }, index) => followFeed(url, (event) => feeds[index]?.push(event))),
  );
  await other.call('POST', '/webhook/set/main', {
    webhook: { url: `http://${hooks}/`, events: ['messages.upsert'] },
  });
  await Promise.all([other.call('GET', '/webhook/find/main'), owner.call('GET', '/webhook/find/main')]);
  const sent: string[] = [];
  for (const replica of [owner, other, owner, other]) {
    sent.push((await replica.call('POST', SEND, { number: ada.number, audio })).body.key.id);
  }
  const upserts = (feed: FeedEvent[] = []): string[] =>
    feed
      .flatMap(({ event, envelope }) => (event === 'messages.upsert' ? [envelope.data.key.id] : []))
      // What was sent before may be shown only now.
      .filter((id) => sent.includes(id));
  await until('both feeds to have shown all', () => feeds.every((feed) => upserts(feed).length >= 4));
  await until('the webhook to be told of all', () => told.length >= 4);
  for (const stop of stops) stop();
  for (const feed of feeds) expect(upserts(feed)).toEqual(sent);
  expect(new Set(told).size).toBe(told.length);
  expect(told).toHaveLength(4);
});

// Broken by hand (src/gateway/replicas/published-states.ts): told once, whatever becomes of it. Connecting for ever.
it('a state that Redis did not take is shown by the other replica as soon as it does', async () => {
  const key = '{soundpost}:gateway:instance-states';
  const client = new Redis(redis.socketPath);
  await client.multi().del(key).set(key, 'refuses every field').exec();
  await owner.call('DELETE', '/instance/logout/main');
  await owner.call('GET', '/instance/connect/main');
  await client.del(key);
  client.disconnect();
  await until('the other replica to show it', async () => {
    const { body } = await other.call('GET', '/instance/fetchInstances');
    return body[0]?.status === 'open';
  });
});

it('who hangs up is hung up on at the owner, too', async () => {
  const workspaces = async (): Promise<number> =>
    (await readdir(join(folder.path, 'workspaces'))).filter((name) => name.includes(`.${owner.child.pid}.`))
      .length;
  const before = await workspaces();
  const upload = request(`${other.url}${SEND}`, {
    method: 'POST',
    headers: { apikey: API_KEY, 'content-type': 'multipart/form-data; boundary=x' },
  });
  upload.on('error', () => undefined);
  upload.write('--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nbegin');
  await until('the owner to read the form', async () => (await workspaces()) > before);
  upload.destroy();
  await until('the owner to have given up', async () => (await workspaces()) === before);
});

it('only replicas may say that a request was passed on, and one that was goes no further', async () => {
  const path = '/instance/connectionState/main';
  const ask = (value: string) => other.call('GET', path, undefined, { [TICKET_HEADER]: value });
  const ticket = { address: '203.0.113.7', requestId: 'an-id' };
  const right = new Tickets(REPLICA_KEY);
  const forged = [
    'x',
    '.',
    new Tickets(Buffer.alloc(32)).issue(ticket, { method: 'GET', path }),
    right.issue(ticket, { method: 'POST', path }),
    right.issue(ticket, { method: 'GET', path: SEND }),
    `x${right.issue(ticket, { method: 'GET', path })}`,
    'x'.repeat(5000),
  ];
  for (const value of forged) {
    expect((await ask(value)).status).toBe(401);
  }
  const stopped = await ask(right.issue(ticket, { method: 'GET', path }));
  expect([stopped.status, stopped.body.code]).toEqual([503, 'service_unavailable']);
  expect(stopped.body.requestId).toBe('an-id');
  const taken = await owner.call('GET', path, undefined, {
    [TICKET_HEADER]: right.issue(ticket, { method: 'GET', path }),
  });
  expect(taken.status).toBe(200);
  // It opens nothing by itself.
  const keyless = await owner.call('GET', path, undefined, {
    [TICKET_HEADER]: right.issue(ticket, { method: 'GET', path }),
    apikey: '',
  });
  expect(keyless.status).toBe(401);
});
