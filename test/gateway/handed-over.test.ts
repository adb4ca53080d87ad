/** What is marked before a network that knows no id of ours has it, at each point where the process may die. */
import { randomUUID } from 'node:crypto';
import { MessageLog, type MessageRecord, plainContext } from 'soundpost-chat/message-log';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { handOver } from '../../src/gateway/outgoing.ts';

const INSTANCE = randomUUID();
const unaware = { knowsNoIds: true } as const;

let server: TestRedis;
let redis: Redis;
let log: MessageLog;
let sent: string[];

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectPatiently(server.url);
  log = new MessageLog(redis, 3600);
  sent = [];
});

afterAll(async () => {
  await closeRedis(redis);
  await server.close();
});

const intend = (id: string): Promise<MessageRecord> =>
  log.intend({
    instanceId: INSTANCE,
    instanceName: 'shop',
    ownJid: '1@s.whatsapp.net',
    key: { remoteJid: '2@s.whatsapp.net', fromMe: true, id },
    timestampSeconds: 1_795_000_000,
    message: { conversation: id },
    context: plainContext,
  });

const sendAs = async (id: string, outcome?: Error): Promise<string> => {
  const record = await intend(id);
  try {
    await handOver(log, unaware, record, async () => {
      sent.push(id);
      if (outcome !== undefined) throw outcome;
    });
    await log.settle(record);
    return 'sent';
  } catch (error) {
    return error instanceof GatewayError ? error.code : 'broken';
  }
};
const timesOf = (id: string): number => sent.filter((one) => one === id).length;
const refused = new GatewayError('network_refused', 'no');
const lost = new GatewayError('timeout', 'lost');

it('is sent again after a death before the mark, and never after one', async () => {
  await intend('DIED-BEFORE');
  expect(await sendAs('DIED-BEFORE')).toBe('sent');
  await log.mark(await intend('DIED-AFTER'), 'dead');
  expect(await sendAs('DIED-AFTER')).toBe('timeout');
  expect([timesOf('DIED-BEFORE'), timesOf('DIED-AFTER')]).toEqual([1, 0]);
  const again = handOver(log, unaware, await intend('DIED-AFTER'), async () => undefined);
  // A client that repeats it would get the same answer.
  await expect(again).rejects.toMatchObject({ code: 'timeout', retryable: false });
});

it('stays in doubt after a lost answer or an unknown error, and is free after a certain refusal', async () => {
  expect([await sendAs('LOST', lost), await sendAs('LOST')]).toEqual(['timeout', 'timeout']);
  expect([await sendAs('ODD', new Error('?')), await sendAs('ODD')]).toEqual(['broken', 'timeout']);
  expect([await sendAs('REFUSED', refused), await sendAs('REFUSED')]).toEqual(['network_refused', 'sent']);
  expect([timesOf('LOST'), timesOf('ODD'), timesOf('REFUSED')]).toEqual([1, 1, 2]);
});

it('is not in doubt when Redis takes the mark and its answer is lost, and the client repeats it', async () => {
  const record = await intend('REPEATED');
  expect(await Promise.all(['a', 'a', 'b'].map((token) => log.mark(record, token)))).toEqual([
    true,
    true,
    false,
  ]);
  await log.unmark(record, 'b');
  expect((await log.find(INSTANCE, 'REPEATED'))?.marked).toBe(true);
  await log.unmark(record, 'a');
  const answerLost: Pick<MessageLog, 'mark' | 'unmark'> = {
    async mark(...given) {
      await log.mark(...given);
      throw new Error('Command timed out');
    },
    unmark: (...given) => log.unmark(...given),
  };
  const hand = async () => void sent.push('REPEATED');
  await expect(handOver(answerLost, unaware, record, hand)).rejects.toThrow('timed out');
  expect([timesOf('REPEATED'), await sendAs('REPEATED')]).toEqual([0, 'sent']);
});

it('goes out once when two processes have it', async () => {
  const record = await intend('TWICE');
  const hand = async () => void sent.push('TWICE');
  const both = await Promise.allSettled([
    handOver(log, unaware, record, hand),
    handOver(log, unaware, record, hand),
  ]);
  expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(timesOf('TWICE')).toBe(1);
});

it('is settled by a status, under our id and then under the network’s', async () => {
  await sendAs('SETTLED', lost);
  await log.advance(INSTANCE, 'SETTLED', 'DELIVERY_ACK', { networkId: 'wamid.1' });
  expect(await log.find(INSTANCE, 'SETTLED')).toMatchObject({
    settled: true,
    networkId: 'wamid.1',
    status: 'DELIVERY_ACK',
  });
  expect(await log.advance(INSTANCE, 'wamid.1', 'READ')).toBe(true);
  expect(await log.idOf(INSTANCE, 'wamid.1')).toBe('SETTLED');
  expect(await sendAs('SETTLED')).toBe('timeout');
  await log.forget(INSTANCE);
  expect(await log.idOf(INSTANCE, 'wamid.1')).toBeUndefined();
});

it('needs no mark where the network knows our ids', async () => {
  const record = await intend('KNOWN');
  for (let nth = 0; nth < 2; nth++) await handOver(log, {}, record, async () => void sent.push('KNOWN'));
  expect([timesOf('KNOWN'), (await log.find(INSTANCE, 'KNOWN'))?.marked]).toEqual([2, false]);
});
