/** Deliveries that keep an order, on a real Redis and a receiver whose answers the test gives one by one. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { doubling, type FollowUpKind, type Lane, scheduled } from '../../src/followups/kind.ts';
import { type Post, tryWebhook, type Webhook } from '../../src/followups/post-webhook.ts';
import { FollowUpQueue } from '../../src/followups/queue.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { startRedisProxy } from '../gateway/redis-proxy.ts';
import { jobKey } from '../jobs/bullmq-keys.ts';
import { logger, useQueue } from '../jobs/queue-fixture.ts';

const queue = useQueue();
const KEEP = { age: 3600 };
/** Fewer than the deliveries of most tests: whoever waits in a lane may keep no place. */
const PLACES = 2;

/** A receiver of everything: `<lane> <number>` as it was asked for, and what it answers to that. */
class Receiver {
  readonly heard: string[] = [];
  readonly #answers = new Map<string, (status: number) => void>();
  /** Those that are not answered by themselves. */
  readonly #holds: (name: string) => boolean;

  constructor(holds: (name: string) => boolean = () => false) {
    this.#holds = holds;
  }

  readonly post: Post = async ({ body, signal }) => {
    this.heard.push(body);
    const status = this.#holds(body)
      ? await new Promise<number>((resolve, reject) => {
          this.#answers.set(body, resolve);
          signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
        })
      : 204;
    return { status, latencyMs: 1 };
  };

  answer(name: string, status: number): void {
    this.#answers.get(name)?.(status);
  }

  of(lane: string): string[] {
    return this.heard.filter((name) => name.startsWith(lane)).map((name) => name.slice(lane.length + 1));
  }
}

const Payload = z.object({ deliveryId: z.string() });
type Kind = FollowUpKind<z.infer<typeof Payload>, Webhook, object>;

function kindOf(receiver: Receiver, laneUntil: Lane['until'] = 'first try'): Kind {
  return {
    payload: Payload,
    prepare: async ({ deliveryId: id }) => ({
      ready: { id, url: 'https://hook.example', body: id.replace('-', ' '), secrets: [] },
    }),
    try: (webhook, _payload, attempt, signal) =>
      tryWebhook(webhook, attempt, signal, {
        ...{ post: receiver.post, finalStatuses: new Set([410]), logger, about: {}, event: 'event' },
      }),
    schedule:
      laneUntil === 'end' ? doubling({ firstMs: 50, longestMs: 50, tries: 100 }) : scheduled([0, 0.05, 0.1]),
    lane: ({ deliveryId }) => ({
      name: deliveryId.split('-')[0] ?? '',
      order: deliveryId,
      until: laneUntil,
    }),
  };
}

function open(redis: Redis): FollowUpQueue {
  const deliveries = new FollowUpQueue({
    name: 'gateway-webhook',
    redis,
    keep: { delivered: KEEP, failed: KEEP },
    logger,
  });
  queue().onClose(() => deliveries.close());
  return deliveries;
}

async function deliver(kind: Kind, { url, lockSeconds = 30 }: { url?: string; lockSeconds?: number } = {}) {
  const redis = queue().connect('worker', url);
  const worker = await FollowUpWorker.start({
    queue: open(redis),
    redis,
    kindOf: () => kind,
    isAlone: true,
    concurrency: PLACES,
    lockSeconds,
    logger,
  });
  queue().onClose(() => worker.close(0));
  return worker;
}

async function add(...deliveryIds: string[]): Promise<void> {
  const deliveries = open(queue().redis);
  for (const deliveryId of deliveryIds) {
    await deliveries.add(deliveryId, 'event', { deliveryId }, 100);
  }
}

const five = (lane: string): string[] => [1, 2, 3, 4, 5].map((number) => `${lane}-${number}`);

describe('a lane until the first try', () => {
  it('is tried in order, and one that failed comes after those that waited behind it', async () => {
    const receiver = new Receiver((name) => name === 'a 1' && receiver.of('a').length === 1);
    await deliver(kindOf(receiver));
    await add(...five('a'));
    await until('the first one is heard', () => receiver.of('a').length === 1);
    receiver.answer('a 1', 500);
    await until('all are heard', () => receiver.of('a').length === 6);
    expect(receiver.of('a').slice(0, 2)).toEqual(['1', '2']);
    expect(receiver.of('a').filter((number, index) => number !== '1' || index === 0)).toEqual([
      '1',
      '2',
      '3',
      '4',
      '5',
    ]);
  });

  it('that hangs keeps one place: others are told meanwhile', async () => {
    const receiver = new Receiver((name) => name.startsWith('dead'));
    await deliver(kindOf(receiver));
    await add(...five('dead'), ...five('alive'));
    await until('the other lane is told', () => receiver.of('alive').length === 5);
    expect(receiver.of('alive')).toEqual(['1', '2', '3', '4', '5']);
    expect(receiver.of('dead')).toEqual(['1']);
  });

  it('whose first one is given up goes on with the second', async () => {
    const receiver = new Receiver((name) => name === 'a 1');
    await deliver(kindOf(receiver));
    await add('a-1', 'a-2');
    await until('the first one is heard', () => receiver.heard.length === 1);
    receiver.answer('a 1', 410);
    await until('the second one is heard', () => receiver.heard.length === 2);
    expect(receiver.heard).toEqual(['a 1', 'a 2']);
  });
});

it('a lane until the end: nobody comes before the first one is taken', async () => {
  const receiver = new Receiver((name) => name === 'relay 1' && receiver.heard.length <= 2);
  await deliver(kindOf(receiver, 'end'));
  await add(...five('relay'));
  for (const tries of [1, 2]) {
    await until('it is tried', () => receiver.heard.length === tries);
    receiver.answer('relay 1', 500);
  }
  await until('all are heard', () => receiver.heard.length === 7);
  expect(receiver.of('relay')).toEqual(['1', '1', '1', '2', '3', '4', '5']);
});

describe('the next process', () => {
  it('goes on in order where one was closed in the middle of a try, before what came since', async () => {
    const hanging = new Receiver(() => true);
    const worker = await deliver(kindOf(hanging));
    await add(...five('a'));
    await until('the first one is heard', () => hanging.heard.length === 1);
    await until(
      'the others wait',
      async () => (await queue().queue('gateway-webhook').getDelayedCount()) === 4,
    );
    await worker.close(0);
    await add('a-6');
    const receiver = new Receiver();
    await deliver(kindOf(receiver));
    await until('all are heard', () => receiver.heard.length === 6);
    expect(receiver.of('a')).toEqual(['1', '2', '3', '4', '5', '6']);
  });

  it('goes on in order where one died, as soon as its lock has run out; other lanes do not wait for that', async () => {
    const hanging = new Receiver((name) => name.startsWith('a'));
    // A connection that breaks for good is all that Redis sees of a process that dies.
    const proxy = await startRedisProxy(queue().server.socketPath, { command: 'b-1', reachesRedis: false });
    await deliver(kindOf(hanging), { url: proxy.url, lockSeconds: 2 });
    queue().onClose(() => proxy.close());
    await add(...five('a'));
    await until('the first one is heard', () => hanging.heard.length === 1);
    await until(
      'the others wait',
      async () => (await queue().queue('gateway-webhook').getDelayedCount()) === 4,
    );
    await add('b-1');
    await proxy.stopped;
    const lock = `${jobKey('gateway-webhook', 'a-1')}:lock`;
    // It runs out when the test says so, however long the rest takes.
    expect(await queue().redis.pexpire(lock, 600_000)).toBe(1);
    await add('c-1');
    const receiver = new Receiver();
    await deliver(kindOf(receiver), { lockSeconds: 2 });
    await until('the other lane is told', () => receiver.of('c').length === 1);
    expect(receiver.of('a')).toEqual([]);
    await queue().redis.pexpire(lock, 1);
    await until('all of the lane are heard', () => receiver.of('a').length === 5);
    expect(receiver.of('a')).toEqual(['1', '2', '3', '4', '5']);
  });
});
