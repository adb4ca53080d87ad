/** Shares of a full worker: a key without a place begins beyond them, nothing that runs is touched, and places that fall free even out. */

import { until } from 'soundpost-testing/until';
import { afterEach, expect, it, vi } from 'vitest';
import { ACCEPTED_CHANNEL } from '../../src/jobs/names.ts';
import { Shares } from '../../src/jobs/shares.ts';
import { apiKeyKey, PAUSED_FIELD } from '../../src/jobs/tenants/api-keys.ts';
import { resultOf } from './job-result.ts';
import { aborted, logger, useQueue } from './queue-fixture.ts';

const PLACES = 6;
const [SLOW, OTHER] = ['slowslow', 'otherone'];

const queue = useQueue();
afterEach(() => {
  vi.useRealTimers();
});

interface Running {
  readonly tenant: string;
  readonly end: () => void;
}

/** A worker whose jobs run until the test ends them; those of `quick` keys end at once. */
function openWorker({ places = PLACES, quick = '' } = {}) {
  const running = new Map<string, Running>();
  const interrupted: string[] = [];
  queue().consume(
    async ({ jobId, payload: { tenant }, signal, takeTurn }) => {
      const ending = Promise.withResolvers<void>();
      running.set(jobId, { tenant, end: ending.resolve });
      signal.addEventListener('abort', () => interrupted.push(jobId));
      try {
        if (tenant !== quick) await Promise.race([ending.promise, aborted(signal)]);
        await takeTurn();
        return resultOf(jobId);
      } finally {
        running.delete(jobId);
      }
    },
    { concurrency: places, takesTurns: true },
  );
  const held = (tenant: string) => [...running.values()].filter((job) => job.tenant === tenant);
  const hold = (counts: Readonly<Record<string, number>>) =>
    until(`places are held: ${JSON.stringify(counts)}`, () =>
      Object.entries(counts).every(([tenant, count]) => held(tenant).length === count),
    );
  return { running, interrupted, held, hold };
}

/** Ids of the waiting jobs, the next one first. */
const waiting = async () => (await queue().queue('extract').getPrioritized()).map(({ id }) => id);

it('thirty sources that never end, or a burst, keep no newcomer waiting, and are not interrupted', async () => {
  const { running, interrupted, held, hold } = openWorker();
  const slow = await queue().submitMany(30, SLOW);
  await hold({ [SLOW]: PLACES });
  const left = await waiting();
  const newcomers = Array.from({ length: PLACES }, (_, nth) => `newcome${nth}`);
  for (const [nth, tenant] of newcomers.entries()) {
    const [first] = await queue().submitMany(2, tenant);
    await until(`${tenant} begins`, () => running.has(first ?? ''));
    // Its second job has to wait, and so do those of the key that holds the places.
    expect(running.size).toBe(PLACES + nth + 1);
  }
  // Twice the places are the most.
  await queue().submit(OTHER);
  expect(held(SLOW)).toHaveLength(PLACES);
  expect(running.size).toBe(2 * PLACES);
  expect((await waiting()).filter((jobId) => left.includes(jobId))).toEqual(left);
  held(newcomers[0] ?? '')[0]?.end();
  await hold({ [OTHER]: 1 });
  expect(interrupted).toEqual([]);
  const bull = queue().queue('extract');
  const tries = await Promise.all(slow.map(async (jobId) => (await bull.getJob(jobId))?.attemptsStarted));
  expect(tries.toSorted()).toEqual([...Array(30 - PLACES).fill(0), ...Array(PLACES).fill(1)]);
});

it('a key that has had many turns is not kept behind the waiting jobs of one that holds all places', async () => {
  const { hold, held } = openWorker({ quick: OTHER });
  await queue().submitMany(10, SLOW);
  await hold({ [SLOW]: PLACES });
  for (let nth = 0; nth < 20; nth++) await queue().reaches(await queue().submit(OTHER), 'completed');
  // Several at once: the end of one makes the next begin.
  const several = await queue().submitMany(10, OTHER);
  for (const jobId of several) await queue().reaches(jobId, 'completed');
  expect(held(SLOW)).toHaveLength(PLACES);
});

it('one key alone uses every place and no more, also after others have come and gone', async () => {
  const { running, hold } = openWorker({ quick: OTHER });
  await queue().submitMany(20, SLOW);
  await hold({ [SLOW]: PLACES });
  for (let nth = 0; nth < 3; nth++) await queue().reaches(await queue().submit(OTHER), 'completed');
  for (let nth = 0; nth < 5; nth++) {
    const [first] = running;
    first?.[1].end();
    await until(
      'the next one has its place',
      () => running.size === PLACES && !running.has(first?.[0] ?? ''),
    );
  }
});

it('places that fall free go to the key below its share, until both have as many', async () => {
  const { held, hold } = openWorker();
  await queue().submitMany(20, SLOW);
  await hold({ [SLOW]: PLACES });
  await queue().submitMany(20, OTHER);
  await hold({ [OTHER]: 1 });
  for (const [slow, other] of [
    [5, 1],
    [4, 2],
    [3, 3],
    [3, 3],
  ]) {
    const [one] = held(SLOW);
    one?.end();
    await until('it has ended', () => !held(SLOW).includes(one as Running));
    await hold({ [SLOW]: slow ?? 0, [OTHER]: other ?? 0 });
  }
});

it('the message of a submission is enough, and a lost one is made up for', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { hold, running } = openWorker({ places: 2 });
  await queue().submitMany(4, SLOW);
  await until('the worker hears of submissions', async () => {
    const [, listening] = (await queue().redis.pubsub('NUMSUB', ACCEPTED_CHANNEL)) as [string, number];
    return listening === 1;
  });
  await hold({ [SLOW]: 2 });
  await queue().submit(OTHER);
  await hold({ [OTHER]: 1 });
  // A paused key's job is not taken; that the pause ends is told to nobody.
  await queue().redis.hset(apiKeyKey('pausedon'), PAUSED_FIELD, 1);
  const paused = await queue().submit('pausedon');
  await queue().redis.hdel(apiKeyKey('pausedon'), PAUSED_FIELD);
  await vi.advanceTimersByTimeAsync(1000);
  await until('the job begins', () => running.has(paused));
});

it('a job that proves to be of a key with a place is not admitted beyond them', async () => {
  const worker = queue().worker('extract');
  let held: string[] = [];
  const shares = new Shares({ redis: queue().redis, worker, places: 2, held: () => held, logger });
  queue().onClose(async () => shares.close());
  const admits = (...keys: string[]) => {
    held = keys;
    return shares.admits('a');
  };
  expect([admits('a'), admits('a', 'b'), admits('b', 'b'), admits('b', 'b', 'a')]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect(admits('b', 'b', 'c', 'd')).toBe(false);
  expect(worker.concurrency).toBe(2);
});
