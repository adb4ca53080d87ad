/** Texts that were not all sent: what callers are told when another process takes over, or the gateway stops. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { Lease, standby, thisMoment } from 'soundpost-chat/lease/lease';
import { MessageLog } from 'soundpost-chat/message-log';
import { defaultInstanceSettings } from 'soundpost-contract/gateway-instances';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OutgoingOrder, SendRate } from '../../src/gateway/outgoing.ts';
import { TextSender } from '../../src/gateway/text-sender.ts';

const instance = {
  id: randomUUID(),
  name: 'main',
  transport: 'loopback' as const,
  settings: defaultInstanceSettings,
  createdAt: new Date().toISOString(),
  tokenHash: '',
  loggedOut: false,
};

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.socketPath);
});
afterAll(async () => {
  redis.disconnect();
  await server.close();
});

interface Attempt {
  readonly lease: Lease;
  readonly closing: AbortController;
  /** Sends two; `during` happens while the network has the one of this number. */
  send(during: (text: number) => void): Promise<void>;
}

function attempt(): Attempt {
  const lease = new Lease('1 a-process', 60_000, thisMoment());
  const closing = new AbortController();
  const texts = new TextSender({
    log: new MessageLog(redis, 60),
    rate: new SendRate(redis, { loopback: 0, xmpp: 0, whatsapp: 0 }),
    order: new OutgoingOrder(),
    lease,
    closing: AbortSignal.any([closing.signal, lease.lost]),
  });
  const chat = { jid: '99900000002@people.loopback', isGroup: false, name: 'Ada' };
  return {
    lease,
    closing,
    send(during) {
      const all = [1, 2].map(() => ({ messageId: randomUUID(), chat, text: 'come' }));
      let count = 0;
      return texts.send(instance, { ownJid: '99900000001@people.loopback' }, all, async () => {
        count += 1;
        during(count);
        if (!lease.isValid) throw standby();
      });
    },
  };
}

// Broken by hand (src/gateway/text-sender.ts): the signal's own reason, which says to send again. 503.
it('a lease that is lost while the network has a text: whether it was sent is not known', async () => {
  for (const lostAt of [1, 2]) {
    const { lease, send } = attempt();
    await expect(send((text) => text === lostAt && lease.lose())).rejects.toMatchObject({ code: 'timeout' });
  }
});

it('a gateway that stops between two texts does not ask for both again', async () => {
  const { closing, send } = attempt();
  await expect(send((text) => text === 1 && closing.abort())).rejects.toMatchObject({ code: 'timeout' });
});

it('a lease that was lost before anything was said: nothing was sent, send it again', async () => {
  const { lease, send } = attempt();
  let said = 0;
  lease.lose();
  const sending = send((text) => {
    said = text;
  });
  await expect(sending).rejects.toMatchObject({ code: 'standby' });
  expect(said).toBe(0);
});
