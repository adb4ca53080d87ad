/** Keys and endpoints take turns: deliveries on a real Redis to receivers whose answers the test gives. */

import { ownKey } from 'soundpost-kit/redis/keys';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { endpointOf, failingSinceMs } from '../../src/followups/endpoints.ts';
import { scheduled } from '../../src/followups/kind.ts';
import { TryPlaces } from '../../src/followups/places.ts';
import { type Post, tryWebhook } from '../../src/followups/post-webhook.ts';
import { FollowUpQueue } from '../../src/followups/queue.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { logger, useQueue } from '../jobs/queue-fixture.ts';

const queue = useQueue();
const KEEP = { age: 3600 };
const PER_KEY = 16;
const PER_HOST = 24;
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

  hears(url: string, often = 1): boolean {
    return this.heard.filter((one) => one === url).length >= often;
  }

  /** How many tries are under way. */
  underWay(host = ''): number {
    return this.#owed.filter(({ url }) => url.includes(host)).length;
  }

  /** Answers the try at this address that waits longest. */
  answer(host: string, status: number): void {
    const index = this.#owed.findIndex(({ url }) => url.includes(host));
    if (index >= 0) this.#owed.splice(index, 1)[0]?.answer(status);
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
      turn: async ({ tenant, url }) => ({ key: tenant, ...endpointOf(url), places: PLACES }),
    }),
    isAlone: false,
    concurrency: 100,
    lockSeconds: 30,
    logger,
  });
  queue().onClose(() => worker.close(0));
}

async function add(tenant: string, ...urls: string[]): Promise<void> {
  const deliveries = open('request');
  for (const url of urls) {
    added += 1;
    const data = { deliveryId: `${tenant}-${added}`, tenant, url };
    await deliveries.add(data.deliveryId, 'event', data, 2);
  }
}

let added = 0;
const times = <T>(count: number, of: (nth: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => of(index + 1));
const delayed = () => queue().queue('webhook').getDelayedCount();
const hanging = () => new Receivers((url) => url.includes('hole'));

/** Answered now, so that it is known to work. */
async function proven(receivers: Receivers, key: string, ...urls: string[]): Promise<void> {
  await add(key, ...urls);
  await until('they are told', () => urls.every((url) => receivers.heard.includes(url)));
  await until('their places are free', async () => (await queue().redis.zcard(heldBy(key, 2))) === 0);
}

const heldBy = (key: string, standing: 1 | 2 | 3): string =>
  `${ownKey('places', 'webhook')}:key:${key}:${standing}`;
const failingSince = (url: string, key = 'key1') => failingSinceMs(queue().redis, 'webhook', key, url);
const hole = (path: unknown): string => `https://flows.example/hole/${path}`;
const GOOD = 'https://flows.example/good';
const OTHER = 'https://flows.example/other';

it('one that leaves while it waits is given no place later', async () => {
  const promoted: string[] = [];
  const places = new TryPlaces(queue().connect('worker'), async (jobId) => void promoted.push(jobId));
  const claim = (jobId: string) => ({
    ...{ jobId, key: 'key1', host: 'transcriber' },
    places: { name: 'transcript', perKey: 1, perHost: 1, leaseMs: 30_000 } as const,
  });
  const park = async () => undefined;
  expect(await places.take(claim('one'), park)).toBe(true);
  expect(await places.take(claim('two'), park)).toBe(false);
  expect(await places.take(claim('three'), park)).toBe(false);
  await places.leave(claim('two'), undefined);
  await places.leave(claim('one'), 200);
  expect(promoted).toEqual(['three']);
});

describe('paths that do not answer', () => {
  it('hold one place each, and none of another path or key of their host', async () => {
    const receivers = hanging();
    await deliver(receivers);
    await add('key1', ...times(40, (nth) => hole(nth % 4)));
    await until('the others wait', async () => (await delayed()) === 36);
    await add('key1', GOOD);
    await add('key2', OTHER);
    await until('good ones are told', () => receivers.hears(GOOD) && receivers.hears(OTHER));
    expect(receivers.underWay()).toBe(4);
  });

  it('and never did hold three quarters of their key: the rest is for those that do', async () => {
    const receivers = hanging();
    await deliver(receivers);
    await proven(receivers, 'key1', GOOD);
    await add('key1', ...times(40, hole));
    await until('the others wait', async () => (await delayed()) === 40 - 12);
    await add('key1', GOOD);
    await add('key2', OTHER);
    await until('good ones are told', () => receivers.hears(GOOD, 2) && receivers.hears(OTHER));
    expect(receivers.underWay()).toBe(12);
  });

  it('although they did once hold half of their key with more than one try each', async () => {
    let isDead = false;
    const receivers = new Receivers((url) => isDead && url.includes('hole'));
    await deliver(receivers);
    await proven(receivers, 'key1', hole(1), hole(2));
    isDead = true;
    await add('key1', ...times(40, (nth) => hole(1 + (nth % 2))));
    await until('the others wait', async () => (await delayed()) === 40 - PER_KEY / 2);
    await add('key1', GOOD);
    await until('another path is told', () => receivers.hears(GOOD));
  });

  it('and failed hold a quarter of their key, and all but two places of their host', async () => {
    const receivers = hanging();
    await deliver(receivers);
    const fail = async (key: string, count: number): Promise<void> => {
      await add(key, ...times(count, (nth) => hole(`${key}${nth}`)));
      await until('they are asked', () => receivers.underWay() === count);
      times(count, () => receivers.answer('hole', 503));
      await until('they fail', async () => (await failingSince(hole(`${key}${count}`), key)) !== undefined);
      await until('places are free', async () => (await queue().redis.zcard(heldBy(key, 2))) === 0);
    };
    const keys = times(6, (nth) => `key${nth}`);
    for (const key of keys) await fail(key, 5);
    await add('key1', ...times(5, (nth) => hole(`key1${nth}`)));
    await until('one waits', async () => (await delayed()) === 6 * 5 + 1);
    expect(receivers.underWay()).toBe(PER_KEY / 4);
    for (const key of keys.slice(1)) await add(key, ...times(5, (nth) => hole(`${key}${nth}`)));
    await until('two of the host are left', () => receivers.underWay() === PER_HOST - 2);
    await add('key6', GOOD);
    await until('a good one is told', () => receivers.hears(GOOD));
    expect(receivers.underWay()).toBe(PER_HOST - 2);
  });
});

describe('who waits', () => {
  it('is let in by keys in turn, however many paths another key asks', async () => {
    const receivers = hanging();
    await deliver(receivers);
    await add('key1', ...times(60, hole));
    await add('key2', ...times(60, (nth) => hole(100 + nth)));
    await until('the host is full', async () => (await delayed()) === 120 - PER_HOST);
    await add('key3', GOOD);
    await until('the third key waits', async () => (await delayed()) === 121 - PER_HOST);
    for (let answers = 1; answers <= 3; answers++) {
      receivers.answer('hole', 404);
      await until('another one is asked', () => receivers.heard.length >= PER_HOST + answers);
    }
    expect(receivers.hears(GOOD)).toBe(true);
  });

  it('is let in by the endpoints of a key in turn', async () => {
    let isSlow = false;
    const receivers = new Receivers(() => isSlow);
    await deliver(receivers);
    await proven(receivers, 'key1', hole('a'), hole('b'));
    isSlow = true;
    await add('key1', ...times(20, () => hole('a')));
    await add('key1', ...times(20, () => hole('b')));
    await until('half of the key is asked', async () => (await delayed()) === 40 - PER_KEY / 2 - 1);
    for (let told = 2 + PER_KEY / 2 + 2; told <= 42; told++) {
      receivers.answer('hole', 204);
      if (told > 2 + PER_KEY / 2 + 2)
        await until('the next is asked', () => receivers.heard.length >= told - 1);
    }
    const later = receivers.heard.slice(12, 28);
    expect(later.filter((url) => url === hole('b')).length).toBeGreaterThanOrEqual(6);
    expect(later.filter((url) => url === hole('a')).length).toBeGreaterThanOrEqual(6);
  });
});

it('an endpoint that keeps failing is probed by one try at a time until it answers, which opens it alone', async () => {
  const receivers = hanging();
  await deliver(receivers);
  const startedAtMs = Date.now();
  await add('key1', ...times(10, () => hole('a')), ...times(10, () => hole('b')));
  for (let failures = 1; failures <= 3; failures++) {
    for (const path of ['hole/a', 'hole/b']) {
      await until('one is asked', () => receivers.underWay(path) === 1 && receivers.underWay() === 2);
      receivers.answer(path, 503);
    }
  }
  await until('it is asked again', () => receivers.heard.length === 8);
  expect(await failingSince(hole('a'))).toBeGreaterThanOrEqual(startedAtMs);
  expect(await failingSince(hole('a'), 'key2')).toBeUndefined();

  receivers.answer('hole/a', 204);
  await until('it has its places again', () => receivers.underWay('hole/a') === 6);
  expect(await failingSince(hole('a'))).toBeUndefined();
  expect(await failingSince(hole('b'))).toBeGreaterThanOrEqual(startedAtMs);
  expect(receivers.underWay('hole/b')).toBe(1);
});

it('one endpoint has one state, however it is spelled and whatever its query is', () => {
  const spellings = [
    'https://Flows.example/a/b~c%2Fd',
    'https://flows.example:443/a/./b%7Ec%2fd?token=1#x',
    'https://flows.example./x/%2e%2e/%61/b~c%2Fd',
    'https://user:word@flows.example/a/b%7ec%2Fd',
  ];
  for (const url of spellings) {
    expect(endpointOf(url)).toEqual({
      host: 'https://flows.example',
      endpoint: 'https://flows.example/a/b~c%2Fd',
    });
  }
  expect(endpointOf('http://flows.example:8080/A/').endpoint).toBe('http://flows.example:8080/A/');
});

it('a key that asks thousands of endpoints has the latest 500 remembered, and nothing else is left', async () => {
  const places = new TryPlaces(queue().redis, async () => true);
  for (let nth = 1; nth <= 600; nth++) {
    const claim = { jobId: `j${nth}`, key: 'key1', ...endpointOf(hole(nth)), places: PLACES };
    expect(await places.take(claim, async () => undefined)).toBe(true);
    await places.leave(claim, nth === 600 ? null : 204);
  }
  const keys = await queue().redis.keys(`${ownKey('places', 'webhook')}:*`);
  expect(keys.map((key) => key.replace(/.*:endpoints/, '')).toSorted()).toEqual([':key1', ':key1:latest']);
  for (const key of keys) expect(await queue().redis.ttl(key)).toBeGreaterThan(0);
  const states = Object.values(await queue().redis.hgetall(keys.toSorted()[0] ?? ''));
  expect(states).toHaveLength(500);
  expect(await failingSince(hole(600))).toBeGreaterThan(0);
});

it('a schedule has as many tries as distances', () => {
  const schedule = scheduled([0, 60]);
  expect(schedule(1, 0)).toBeGreaterThanOrEqual(60_000);
  expect(schedule(2, 0)).toBeUndefined();
});

it('an endpoint that answers 404 works', async () => {
  const receivers = hanging();
  await deliver(receivers);
  await add('key1', ...times(20, () => hole('a')));
  for (let tries = 1; tries <= 20; tries++) {
    await until('a try is under way', () => receivers.underWay() > 0);
    receivers.answer('hole', 404);
  }
  expect(await failingSince(hole('a'))).toBeUndefined();
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
