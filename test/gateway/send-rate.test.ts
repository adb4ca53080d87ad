/** How much an instance may send, and in which order. */

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Instance } from 'soundpost-chat/instances';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { defaultInstanceSettings } from 'soundpost-contract/gateway-instances';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OutgoingOrder, SendRate } from '../../src/gateway/outgoing.ts';
import { ada, chatMessages, makeFolder, makeTone, startTestGateway } from './gateway-fixture.ts';

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

/** A minute, less what has gone by of it. @param since before it began, by `performance.now()` */
function expectMinute(seconds: number | undefined, since: number): void {
  expect(seconds).toBeLessThanOrEqual(61);
  expect(seconds).toBeGreaterThanOrEqual(59 - (performance.now() - since) / 1000);
}

describe('the rate of an instance', () => {
  let instance: Instance;

  beforeEach(() => {
    instance = {
      id: randomUUID(),
      name: 'phone',
      transport: 'whatsapp',
      settings: defaultInstanceSettings,
      createdAt: new Date().toISOString(),
      tokenHash: '',
      loggedOut: false,
    };
  });

  const chat = { jid: ada.jid, name: ada.name, isGroup: false };
  const message = (messageId: string) => ({ messageId, chat });

  /** How many seconds each of so many has to wait, to the nearest 20: asking for them takes time, too. */
  const waits = async (rate: SendRate, count: number): Promise<number[]> => {
    const seconds: number[] = [];
    for (let index = 0; index < count; index++) {
      const { atMs } = await rate.reserve(instance, [message(randomUUID())]);
      seconds.push(Math.round(Math.max(0, atMs - Date.now()) / 20_000) * 20);
    }
    return seconds;
  };

  it('lets as many go at once as fit into a minute, and the next ones when there is room', async () => {
    expect(await waits(new SendRate(redis, { whatsapp: 3 }), 6)).toEqual([0, 0, 0, 60, 60, 60]);
  });

  it('refuses what would wait longer than a minute, and says when there will be room', async () => {
    const rate = new SendRate(redis, { whatsapp: 2 });
    const since = performance.now();
    await waits(rate, 4);
    const error = await rate.reserve(instance, [message(randomUUID())]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({ code: 'rate_limited', retryAfterSeconds: expect.any(Number) });
    expectMinute((error as GatewayError).retryAfterSeconds, since);
  });

  it('takes all of several or none', async () => {
    const rate = new SendRate(redis, { whatsapp: 2 });
    await expect(rate.reserve(instance, ['a', 'b', 'c', 'd', 'e'].map(message))).rejects.toMatchObject({
      code: 'rate_limited',
    });
    expect(await waits(rate, 2)).toEqual([0, 0]);
  });

  it('gives back the slot of what was not sent', async () => {
    const rate = new SendRate(redis, { whatsapp: 1 });
    const slot = await rate.reserve(instance, ['a'].map(message));
    await slot.release();
    expect(await waits(rate, 1)).toEqual([0]);
  });

  it('lets nobody go before those that wait, also when room was given back', async () => {
    const rate = new SendRate(redis, { whatsapp: 2 });
    const first = await rate.reserve(instance, ['a', 'b'].map(message));
    expect(await waits(rate, 1)).toEqual([60]);
    await first.release();
    // Behind the one that waits, so it goes no earlier, and takes the minute's second place beside it.
    expect(await waits(rate, 1)).toEqual([60]);
  });

  it('is 20 on whatsapp and 60 on xmpp unless it is set, and none on loopback', async () => {
    const rate = new SendRate(redis);
    expect((await waits(rate, 21)).at(-1)).toBe(60);
    instance = { ...instance, id: randomUUID(), transport: 'xmpp' };
    expect((await waits(rate, 61)).slice(-2)).toEqual([0, 60]);
    instance = { ...instance, id: randomUUID(), transport: 'loopback' };
    expect((await waits(rate, 100)).at(-1)).toBe(0);
  });

  it('is also one into a chat, of 10 to a person on the Cloud API and of 20 to a group on Telegram', async () => {
    const rate = new SendRate(redis);
    instance = { ...instance, transport: 'whatsapp-cloud' };
    const since = performance.now();
    expect((await waits(rate, 10)).at(-1)).toBe(0);
    // At once: the turn of one that waits would hold up all others.
    const refused: GatewayError = await rate.reserve(instance, [message('z')]).catch((error) => error);
    expect(refused).toMatchObject({
      code: 'rate_limited',
      message: expect.stringContaining('into one chat'),
    });
    expect(refused.retryAfterSeconds).toBeGreaterThanOrEqual(54 - (performance.now() - since) / 1000);
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(56);
    // Nothing was booked for it: the instance's other 50 are free.
    const others = Array.from({ length: 50 }, (_, nth) => ({
      ...message(randomUUID()),
      chat: { ...chat, jid: `${nth}@s.whatsapp.net` },
    }));
    const { atMs } = await rate.reserve(instance, others);
    expect(atMs - Date.now()).toBeLessThan(20_000);
    instance = { ...instance, id: randomUUID(), transport: 'telegram' };
    expect((await waits(rate, 21)).at(-1)).toBe(0);
    instance = { ...instance, id: randomUUID() };
    const group = () => ({ messageId: randomUUID(), chat: { ...chat, isGroup: true } });
    await rate.reserve(instance, Array.from({ length: 20 }, group));
    await expect(rate.reserve(instance, [group()])).rejects.toMatchObject({ code: 'rate_limited' });
  });

  it('of one instance is not that of another, and a restart forgets none', async () => {
    await waits(new SendRate(redis, { whatsapp: 1 }), 1);
    expect(await waits(new SendRate(redis, { whatsapp: 1 }), 1)).toEqual([60]);
    instance = { ...instance, id: randomUUID() };
    expect(await waits(new SendRate(redis, { whatsapp: 1 }), 1)).toEqual([0]);
  });
});

describe('the order of an instance', () => {
  const { signal } = new AbortController();

  it('is that of joining, whatever becomes of each', async () => {
    const order = new OutgoingOrder();
    const through: number[] = [];
    const turns = Array.from({ length: 5 }, () => order.join('one'));
    const all = turns.map(async (turn, index) => {
      await turn.come(signal);
      through.push(index);
      turn.leave();
    });
    await Promise.all(all);
    expect(through).toEqual([0, 1, 2, 3, 4]);
  });

  it('is not broken by one that leaves early', async () => {
    const order = new OutgoingOrder();
    const [first, second, third] = [order.join('one'), order.join('one'), order.join('one')];
    second.leave();
    let came = false;
    const third$ = third.come(signal).then(() => {
      came = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(came).toBe(false);
    first.leave();
    await third$;
    expect(came).toBe(true);
  });

  it('holds up no other instance', async () => {
    const order = new OutgoingOrder();
    order.join('one');
    await order.join('two').come(signal);
  });
});

describe('a gateway with a limit', () => {
  it('answers 429 with Retry-After, keeps the rest waiting, and gives that up when it stops', async () => {
    const folder = await makeFolder();
    const own = await startTestRedis();
    await makeTone(join(folder.path, 'tone.ogg'), 1);
    const audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
    const gateway = await startTestGateway({
      redisUrl: own.url,
      dataDir: folder.path,
      sendsPerMinute: { loopback: 1 },
    });
    const send = (headers: Record<string, string> = {}) =>
      gateway.call('POST', '/message/sendMessengerAudio/main', { number: ada.number, audio }, headers);
    const since = performance.now();
    const first = await send({ 'Idempotency-Key': 'a' });
    expect(first.status).toBe(200);
    // A repetition is no send.
    expect((await send({ 'Idempotency-Key': 'a' })).body).toEqual(first.body);
    // One of them has the turn within the minute, whichever gets there first; the other would wait too long.
    const two = [send(), send()];
    const refused = await Promise.race(two);
    expect(refused.status).toBe(429);
    expect(refused.body.code).toBe('rate_limited');
    expectMinute(Number(refused.headers.get('retry-after')), since);
    const invited = await gateway.call('POST', '/group/sendInvite/main', {
      groupJid: (await gateway.call('POST', '/chat/findContacts/main')).body.at(-1).id,
      numbers: [ada.number],
    });
    expect(invited.body.code).toBe('rate_limited');
    expect(await chatMessages(gateway, 'main', ada.jid)).toHaveLength(1);
    await gateway.close();
    const codes = (await Promise.all(two)).map(({ body }) => body.code);
    expect(codes.sort()).toEqual(['rate_limited', 'service_unavailable']);
    await own.close();
    await folder.remove();
  });
});
