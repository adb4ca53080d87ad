/**
 * What lies in Redis after the routes were walked, key by key: a record of this edition (packages/kit/src/redis/record.ts), or a plain value whose reason stands here.
 * A kind of key that is neither fails.
 */
import { randomUUID } from 'node:crypto';
import { ChatBook } from 'soundpost-chat/chat-book';
import { MessageLog, plainContext } from 'soundpost-chat/message-log';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { EDITION } from 'soundpost-kit/redis/record';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Incoming as CloudIncoming } from '../../packages/chat-whatsapp-cloud/src/incoming.ts';
import { queueNames } from '../../src/jobs/names.ts';
import { useClips, useService } from './api-fixture.ts';
import { makeSubjects, routeRequests } from './route-requests.ts';

const service = useService({ parts: ['worker', 'gateway'] });
const clip = useClips('tone.mp4');
const queue = `(${Object.values(queueNames).join('|')})`;

/** What is no record, without the prefix: why. */
const plain: Readonly<Record<string, RegExp>> = {
  'BullMQ’s own, in its form': new RegExp(
    `^${queue}:(meta|id|events|active|marker|stalled-check|[^:]+:lock)$`,
  ),
  'one number, time, id or word':
    /^sp:((virtual-time|written|lease-tokens|secret-fingerprint|replication-mark|mean-\w+-seconds)$|(rate|lease|lease-wanted|message-status):)|^gateway:(event-cursor|lease|lease-tokens|lease-wanted|seeded|loopback:counter|loopback:taken:.+|network-id:.+)$/,
  'numbers, times or ids by id':
    /^sp:(ends|ends-of-day|flows|janitor)$|^sp:(stream-requests|usage:)|^gateway:(instance-names|instance-tokens|unread:.+)$/,
  'an answer as it went out, in the form of the contract': /^(sp|gateway):idempotency:/,
  'sealed; the edition is inside': /^gateway:webhooks$/,
  'compared with the other mark, never read as a record': /^sp:mark$/,
};

let redis: Redis;
beforeAll(() => {
  redis = connectPatiently(service().redis.url);
});
afterAll(() => closeRedis(redis));

/** JSON of an object. */
const isRecord = (text: string): boolean => text.startsWith('{');
const hasEdition = (text: string): boolean => isRecord(text) && JSON.parse(text).version === EDITION;

/** Whether all of it carries its edition. */
async function isOfAnEdition(key: string, name: string): Promise<boolean> {
  switch (await redis.type(key)) {
    case 'hash': {
      const { version, progress: _progress, opts: _opts, ...fields } = await redis.hgetall(key);
      if (version !== undefined) return version === String(EDITION);
      // Of a job, what BullMQ writes beside: its options, how far it is, and reasons in the contract's form.
      const isJob = new RegExp(`^${queue}:`).test(name);
      const records = isJob ? [fields.data, fields.returnvalue ?? fields.data] : Object.values(fields);
      const told = records.filter((text) => text !== undefined && (isJob || isRecord(text)));
      return told.length > 0 && told.every((text) => hasEdition(text ?? ''));
    }
    case 'list':
      return (await redis.lrange(key, 0, -1)).every(hasEdition);
    case 'stream':
      return (await redis.xrange(key, '-', '+')).every(
        ([, fields]) => fields[fields.indexOf('version') + 1] === String(EDITION),
      );
    // Sets hold ids.
    case 'set':
    case 'zset':
      return true;
    default:
      return hasEdition((await redis.get(key)) ?? '');
  }
}

/** What networks keep that are not here: their chats, what waits to be handled, and their ids of messages. */
async function keepOfNetworks(): Promise<void> {
  const id = randomUUID();
  const book = new ChatBook(redis, id);
  const never = new Promise<never>(() => undefined);
  const incoming = new CloudIncoming({
    ...{ book, redis, instance: { id }, session: { isLoggedOut: false }, lease: { assert: () => undefined } },
    ...{ reports: { messageArrived: () => never }, closing: new AbortController().signal },
  } as never);
  const message = {
    from: '12025550101',
    id: 'wamid.1',
    timestamp: '1795000000',
    type: 'text',
    text: { body: 'Hi' },
  };
  await incoming.take('messages', { messages: [message] });
  await until('the chat is known', async () => (await book.find('12025550101@s.whatsapp.net'))?.lastInId);
  const log = new MessageLog(redis, 3600);
  const key = { remoteJid: '5@telegram', fromMe: true, id: 'A' };
  await log.intend({
    ...{ instanceId: id, instanceName: 'bot', ownJid: '7@telegram', key, timestampSeconds: 1_795_000_000 },
    ...{ message: { conversation: 'Hi' }, context: plainContext },
  });
  await log.advance(id, 'A', 'SERVER_ACK', { networkId: '5_1' });
}

it('each kind of key is a record of this edition, or is known to be none', async () => {
  const subjects = await makeSubjects(service(), clip('tone.mp4'));
  const asked = (await routeRequests(subjects)).filter(
    ({ method, path }) => method !== 'DELETE' && !path.endsWith('/events'),
  );
  for (const { method, path, ask } of asked) await service().call(method, path, ask);
  const hook = { enabled: true, url: subjects.hookUrl, events: ['MESSAGES_UPSERT'] };
  for (const [path, body] of [
    ['/webhook/set/main', { webhook: hook }],
    ['/message/sendText/main', { number: '12025550101', text: 'Hello.' }],
    ['/inbox/api/instances/main/calls', { as: '12025550101@people.loopback' }],
  ] as const) {
    expect([path, (await service().gateway('POST', path, body)).status]).toEqual([path, 201]);
  }
  await keepOfNetworks();
  const keys = await redis.keys('*');
  const unknown: string[] = [];
  for (const key of keys) {
    const name = key.slice(KEY_PREFIX.length + 1);
    const isPlain = Object.values(plain).some((pattern) => pattern.test(name));
    // What has expired meanwhile has no type.
    if (!isPlain && (await redis.exists(key)) === 1 && !(await isOfAnEdition(key, name))) unknown.push(name);
  }
  subjects.letGo();
  expect(keys.length).toBeGreaterThan(50);
  expect(unknown).toEqual([]);
});
