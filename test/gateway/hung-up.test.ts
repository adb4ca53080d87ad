/** A caller that hangs up before the network had the message: it is dropped, and what the caller sends next is the only one. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { sendVoiceMessage } from '../../src/followups/kinds/gateway-client.ts';
import { type FeedEvent, followFeed } from './feed.ts';
import {
  API_KEY,
  ada,
  chatMessages,
  eventually,
  hedy,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

/** The longest delay: nothing here waits for its end. */
const LONG_MS = 60_000;

let redis: TestRedis;
let client: Redis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let note: string;
let audio: string;
let instance: string;
let instanceId: string;
let stop: () => void;
const events: FeedEvent[] = [];
let count = 0;

beforeAll(async () => {
  redis = await startTestRedis();
  client = new Redis(redis.socketPath);
  folder = await makeFolder();
  note = join(folder.path, 'tone.ogg');
  await makeTone(note, 1);
  audio = (await readFile(note)).toString('base64');
  gateway = await startTestGateway({
    redisUrl: redis.url,
    dataDir: folder.path,
    sendsPerMinute: { loopback: 3 },
  });
  stop = await followFeed(gateway.url, (event) => events.push(event));
});
afterAll(async () => {
  stop();
  client.disconnect();
  await gateway.close();
  await redis.close();
  await folder.remove();
});
beforeEach(async () => {
  count += 1;
  instance = `office-${count}`;
  const { body } = await gateway.call('POST', '/instance/create', { instanceName: instance });
  instanceId = body.instance.instanceId;
});

const hangingUp: AbortController[] = [];
afterEach(() => {
  for (const call of hangingUp.splice(0)) call.abort();
});

/** A request that is answered only after a minute, and how its caller hangs up. */
function call(path: string, body: object): () => Promise<void> {
  const hangUp = new AbortController();
  hangingUp.push(hangUp);
  const answered = fetch(`${gateway.url}${path}/${instance}`, {
    method: 'POST',
    headers: { apikey: API_KEY, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: hangUp.signal,
  });
  const ended = expect(answered).rejects.toThrow();
  return async () => {
    hangUp.abort();
    await ended;
  };
}

/** Resolves once so many sends of the instance have a place in its minute: one that is dropped gives its own back. */
async function taken(wanted: number): Promise<string> {
  const find = async (): Promise<string> => (await client.keys(`*send-slots*${instanceId}*`))[0] ?? 'none';
  await eventually(
    async () => client.zcard(await find()),
    (found) => found === wanted,
  );
  return find();
}

const voice = (body: object) => call('/message/sendMessengerAudio', { audio, ...body });
const shown = (jid: string, presence: string): Promise<boolean> =>
  eventually(
    async () =>
      events.some(
        ({ event, instanceId: of, envelope: { data } }) =>
          event === 'presence.update' &&
          of === instanceId &&
          data.id === jid &&
          Object.values(data.presences as Record<string, { lastKnownPresence: string }>).some(
            ({ lastKnownPresence }) => lastKnownPresence === presence,
          ),
      ),
    (found) => found,
  );
const sendAgain = async (number: string): Promise<string> => {
  const { status, body } = await gateway.call('POST', `/message/sendMessengerAudio/${instance}`, {
    number,
    audio,
  });
  expect(status).toBe(200);
  return body.key.id;
};
const idsIn = async (jid: string): Promise<string[]> =>
  (await chatMessages(gateway, instance, jid)).map(({ key }) => key.id);

it('during the delay', async () => {
  const hangUp = voice({ number: ada.number, delay: LONG_MS });
  await shown(ada.jid, 'recording');
  await hangUp();
  // The chat no longer shows it, and nobody waits for the rest of the delay.
  await shown(ada.jid, 'paused');
  const again = await sendAgain(ada.number);
  expect(await idsIn(ada.jid)).toEqual([again]);
});

it('in the queue, behind another message', async () => {
  const first = voice({ number: ada.number, delay: LONG_MS });
  await shown(ada.jid, 'recording');
  const second = voice({ number: hedy.number, delay: 1 });
  // Its own delay is over: it waits for the first one.
  await shown(hedy.jid, 'paused');
  await second();
  await taken(1);
  const again = sendAgain(hedy.number);
  await taken(2);
  await first();
  const id = await again;
  expect(await idsIn(hedy.jid)).toEqual([id]);
  expect(await idsIn(ada.jid)).toEqual([]);
});

it('in the slot that the rate gave it, which others get back', async () => {
  for (let sent = 0; sent < 3; sent += 1) await sendAgain(ada.number);
  const hangUp = voice({ number: hedy.number });
  await taken(4);
  await hangUp();
  // A minute later there is room.
  await client.del(await taken(3));
  const again = await sendAgain(hedy.number);
  expect(await idsIn(hedy.jid)).toEqual([again]);
});

it('a text, and an invitation', async () => {
  const first = voice({ number: ada.number, delay: LONG_MS });
  await shown(ada.jid, 'recording');
  const text = call('/message/sendText', { number: hedy.number, text: 'Come.', delay: 1 });
  await shown(hedy.jid, 'paused');
  const { body: contacts } = await gateway.call('POST', `/chat/findContacts/${instance}`);
  const groupJid = contacts.find(({ isGroup }: { isGroup: boolean }) => isGroup).id;
  const invitation = call('/group/sendInvite', { groupJid, description: 'Come', numbers: [hedy.number] });
  await taken(3);
  await text();
  await invitation();
  await taken(1);
  await first();
  await taken(0);
  const again = await sendAgain(hedy.number);
  expect(await idsIn(hedy.jid)).toEqual([again]);
});

it('the hook of the extraction service, whose next try is the only note', async () => {
  const settings = { url: gateway.url, kind: 'soundpost' as const, brand: 'Messenger', apiKey: API_KEY };
  const file = {
    path: note,
    sizeBytes: (await stat(note)).size,
    isNote: true,
    mediaType: 'audio/ogg',
    url: '',
  };
  const hangUp = new AbortController();
  const tryOnce = (signal?: AbortSignal) =>
    sendVoiceMessage(settings, { instance, number: ada.number, delay: 100 }, file, 'job-1', {
      ...(signal && { signal }),
    });
  // Behind a message that waits, so that it cannot go before its caller hangs up.
  const first = voice({ number: hedy.number, delay: LONG_MS });
  await shown(hedy.jid, 'recording');
  const lost = expect(tryOnce(hangUp.signal)).rejects.toThrow();
  await shown(ada.jid, 'paused');
  hangUp.abort();
  await lost;
  await taken(1);
  await first();
  // Until the gateway has noticed, its key is that of a request in progress.
  const sent = await eventually(
    () => tryOnce(),
    ({ kind }) => kind === 'sent',
  );
  expect(await idsIn(ada.jid)).toEqual([sent.kind === 'sent' && sent.key.id]);
});
