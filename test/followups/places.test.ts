/** Keys and hosts take turns: deliveries on a real Redis to receivers whose answers the test gives. */

import { ownKey } from 'soundpost-kit/redis/keys';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scheduled } from '../../src/followups/kind.ts';
import { failingSinceMs, TryPlaces } from '../../src/followups/places.ts';
import { hostOf, type Post, tryWebhook } from '../../src/followups/post-webhook.ts';
import { FollowUpQueue } from '../../src/followups/queue.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { logger, useQueue } from '../jobs/queue-fixture.ts';

const queue = useQueue();
const KEEP = { age: 3600 };
const PER_KEY = 16;
const PER_HOST = 8;
const PLACES = { name: 'webhook', perKey: PER_KEY, perHost: PER_HOST, leaseMs: 30_000 } as const;

/** Of every host: what it was asked, and the answers that are still owed. */
class Receivers {
  readonly heard: string[] = [];
  readonly #owed: { readonly url: string; readonly answer: (status: number) => void }[] = [];
  readonly #hangs: (url: string) => boolean;

  constructor(hangs: (url: string) => boolean) {
    this.#hangs = hangs;
  }

  readonly post: Post = async ({ url, signal }) => {
    this.heard.push(url);
    const status = this.#hangs(url)
      ? await new Promise<number>((answer, reject) => {
          this.#owed.push({ url, answer });
          signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
        })
      : 204;
    return { status, latencyMs: 1 };
  };

  /** How many tries are under way. */
  underWay(host = ''): number {
    return this.#owed.filter(({ url }) => url.includes(host)).length;
  }

  /** Answers the try at this host that waits longest. */
  answer(host: string, status: number): void {
    const [owed] = this.#owed.splice(
      this.#owed.findIndex(({ url }) => url.includes(host)),
      1,
    );
    owed?.answer(status);
  }
}

function open(role: 'request' | 'worker'): FollowUpQueue {
  const redis = queue().connect(role);
  const deliveries = new FollowUpQueue({
    name: 'webhook',
    redis,
    keep: { delivered: KEEP, failed: KEEP },
    logger,
  });
  queue().onClose(() => deliveries.close());
  return deliveries;
}

async function deliver(receivers: Receivers): Promise<void> {
  const worker = await FollowUpWorker.start({
    queue: open('worker'),
    redis: queue().connect('worker'),
    kindOf: () => ({
      payload: z.object({ deliveryId: z.string(), tenant: z.string(), url: z.string() }),
      prepare: async ({ deliveryId: id, url }) => ({ ready: { id, url, body: '{}', secrets: [] } }),
      try: (webhook, _payload, attempt, signal) =>
        tryWebhook(webhook, attempt, signal, {
          ...{ post: receivers.post, finalStatuses: new Set([410]), logger, about: {}, event: 'event' },
        }),
      schedule: scheduled([0, 60]),
      turn: async ({ tenant, url }) => ({ key: tenant, host: hostOf(url), places: PLACES }),
    }),
    isAlone: false,
    concurrency: 100,
    lockSeconds: 30,
    logger,
  });
  queue().onClose(() => worker.close(0));
}

async function add(count: number, tenant: string, urlOf: (nth: number) => string): Promise<void> {
  const deliveries = open('request');
  for (let nth = 1; nth <= count; nth++) {
    const data = { deliveryId: `${tenant}-${nth}`, tenant, url: urlOf(nth) };
    await deliveries.add(`${tenant}-${urlOf(nth).length}-${nth}`, 'event', data, 2);
  }
}

const delayed = () => queue().queue('webhook').getDelayedCount();
const hanging = () => new Receivers((url) => url.includes('hole'));

describe('receivers that never answer', () => {
  it('hold as many places as one host may have, and no place of others', async () => {
    const receivers = hanging();
    await deliver(receivers);
    await add(40, 'key1', () => 'https://hole.example/hook');
    await until('the host has its places', async () => (await delayed()) === 40 - PER_HOST);
    await add(1, 'key1', () => 'https://alive.example/hook');
    await add(1, 'key2', () => 'https://alive.example/other');
    await until('others are told', () => receivers.heard.filter((url) => url.includes('alive')).length === 2);
    expect(receivers.underWay()).toBe(PER_HOST);
  });

  it('of many hosts hold as many places as one key may have', async () => {
    const receivers = hanging();
    await deliver(receivers);
    await add(40, 'key1', (nth) => `https://hole${nth}.example/hook`);
    await until('the key has its places', async () => (await delayed()) === 40 - PER_KEY);
    await add(1, 'key2', () => 'https://alive.example/hook');
    await until('another key is told', () => receivers.heard.includes('https://alive.example/hook'));
    expect(receivers.underWay()).toBe(PER_KEY);
  });

  it('give each place to the next that waits, and hosts take turns', async () => {
    const receivers = hanging();
    await deliver(receivers);
    await add(20, 'key1', () => 'https://hole1.example');
    await add(20, 'key1', () => 'https://hole2.example/');
    await until('the key has its places', async () => (await delayed()) === 40 - PER_KEY);
    for (let tries = PER_KEY; tries < 40; tries++) {
      await until('the next one is under way', () => receivers.heard.length >= tries);
      receivers.answer(tries % 2 === 0 ? 'hole1' : 'hole2', 204);
    }
    await until('all are tried', () => receivers.heard.length === 40);
    const second = receivers.heard.slice(PER_KEY, 32);
    expect(second.filter((url) => url.includes('hole1')).length).toBeGreaterThanOrEqual(6);
    expect(second.filter((url) => url.includes('hole2')).length).toBeGreaterThanOrEqual(6);
  });
});

it('a host that keeps failing is probed by one try at a time, until it answers', async () => {
  const receivers = hanging();
  await deliver(receivers);
  const failingSince = () => failingSinceMs(queue().redis, 'webhook', 'https://hole.example');
  const startedAtMs = Date.now();
  await add(30, 'key1', () => 'https://hole.example/hook');
  await until('the host has its places', () => receivers.underWay() === PER_HOST);
  expect(await failingSince()).toBeUndefined();
  for (let failures = 0; failures < PER_HOST; failures++) receivers.answer('hole', 503);
  await until('it is known to fail', async () => (await failingSince()) !== undefined);
  expect(await failingSince()).toBeGreaterThanOrEqual(startedAtMs);
  // Up to two failures do not count, so that some others were begun meanwhile. Who has a place may be about to post.
  const places = `${ownKey('places', 'webhook')}:host:https://hole.example`;
  await until('what was begun before is over', async () => {
    if (receivers.underWay() > 1) receivers.answer('hole', 503);
    return (await queue().redis.zcard(places)) === 1 && receivers.underWay() === 1;
  });
  const heard = receivers.heard.length;
  // Others wait for the one place.
  expect(heard).toBeLessThan(30);
  receivers.answer('hole', 503);
  await until('the next probe', () => receivers.heard.length === heard + 1);
  expect(receivers.underWay()).toBe(1);

  receivers.answer('hole', 204);
  await until('it has its places again', () => receivers.underWay() === PER_HOST);
  expect(await failingSince()).toBeUndefined();
});

it('a schedule has as many tries as distances', () => {
  const schedule = scheduled([0, 60]);
  expect(schedule(1, 0)).toBeGreaterThanOrEqual(60_000);
  expect(schedule(2, 0)).toBeUndefined();
});

it('a host that answers 404 works', async () => {
  const receivers = hanging();
  await deliver(receivers);
  await add(20, 'key1', () => 'https://hole.example/hook');
  for (let tries = 1; tries <= 20; tries++) {
    await until('a try is under way', () => receivers.underWay() > 0);
    receivers.answer('hole', 404);
  }
  expect(await failingSinceMs(queue().redis, 'webhook', 'https://hole.example')).toBeUndefined();
});

it('the place of a process that died comes back by itself', async () => {
  const take = (jobId: string, leaseMs: number): Promise<boolean> =>
    new TryPlaces(queue().redis, async () => true).take(
      {
        ...{ jobId, key: `key${leaseMs}`, host: `https://host${leaseMs}.example` },
        places: { name: 'webhook', perKey: 1, perHost: 1, leaseMs },
      },
      async () => undefined,
    );
  expect(await take('lives', 60_000)).toBe(true);
  expect(await take('waits', 60_000)).toBe(false);
  expect(await take('dead', 1)).toBe(true);
  await until('it is free', () => take('next', 1));
});
