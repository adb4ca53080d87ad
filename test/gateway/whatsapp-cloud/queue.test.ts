/** The queue of what Meta posted, while our own parts are away and while more comes in. */
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Incoming } from '../../../packages/chat-whatsapp-cloud/src/incoming.ts';

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectPatiently(server.url);
});
afterAll(async () => {
  await closeRedis(redis);
  await server.close();
});

const said = (id: string) => ({
  messages: [{ id, from: '12025550101', timestamp: '1795000000', type: 'text', text: { body: id } }],
});

/** @param failures of the first reports, as of a storage that is away */
function queue(id: string, lindex: Redis['lindex'], failures = 0) {
  const arrived: string[] = [];
  let left = failures;
  const reports = {
    async messageArrived(_instanceId: string, { messageId }: { messageId: string }) {
      if (left-- > 0) throw Object.assign(new Error('i/o error'), { code: 'EIO' });
      arrived.push(messageId);
    },
  };
  const incoming = new Incoming({
    ...{ instance: { id, name: id }, session: { isLoggedOut: false, settings: {} }, reports },
    redis: {
      lindex,
      rpush: (...given: Parameters<Redis['rpush']>) => redis.rpush(...given),
      lrem: (...given: Parameters<Redis['lrem']>) => redis.lrem(...given),
    },
    book: { learn: async () => undefined, heard: async () => undefined },
    lease: { assert: () => undefined },
    closing: new AbortController().signal,
    logger: createLogger('silent'),
  } as never);
  const isEmpty = async () => (await redis.exists(gatewayKey('whatsapp-cloud', id, 'messages'))) === 0;
  return { incoming, arrived, isEmpty };
}

it('outlasts an error of Redis and a storage that is away for longer than there are tries', async () => {
  let isFirst = true;
  const { incoming, arrived, isEmpty } = queue(
    'away',
    (async (...given: Parameters<Redis['lindex']>) => {
      if (!isFirst) return redis.lindex(...given);
      isFirst = false;
      throw new Error('Command timed out');
    }) as never,
    4,
  );
  await incoming.take('messages', said('wamid.1'));
  await until('it arrives', () => arrived.length > 0);
  expect(arrived).toEqual(['wamid.1']);
  await until('it waits no longer', isEmpty);
});

it('handles at once what comes in while the queue is found empty', async () => {
  let isFound = false;
  const { incoming, arrived } = queue('late', (async (...given: Parameters<Redis['lindex']>) => {
    const text = await redis.lindex(...given);
    if (text === null && !isFound) {
      isFound = true;
      await incoming.take('messages', said('wamid.2'));
    }
    return text;
  }) as never);
  await incoming.take('messages', said('wamid.1'));
  await until('both arrive', () => arrived.length === 2);
});
