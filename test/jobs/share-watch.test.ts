/** Places of a full worker: which one is put back, and that jobs of other keys get theirs whatever stands before them in the queue. */

import { until } from 'soundpost-testing/until';
import { afterEach, expect, it, vi } from 'vitest';
import type { ExtractionJob } from '../../src/jobs/extraction-consumer.ts';
import { ACCEPTED_CHANNEL } from '../../src/jobs/names.ts';
import { type Place, placeFor } from '../../src/jobs/share-watch.ts';
import { resultOf } from './job-result.ts';
import { aborted, useQueue } from './queue-fixture.ts';

const NOW_MS = 1_000_000;
const LONG_AGO_MS = NOW_MS - 2000;

/** `a1 b2+`: of key a at place 1 of the queue; `+` has an encoder. */
function placesOf(text: string): Place[] {
  return text.split(' ').map((word) => ({
    tenant: word[0] ?? '',
    order: Number.parseInt(word.slice(1), 10),
    hasTurn: word.endsWith('+'),
  }));
}

const waits = (tenant: string, submittedAtMs = LONG_AGO_MS) => ({ tenant, submittedAtMs });

const cases: readonly [places: string, waiting: string, putBack: string | undefined][] = [
  ['a1 a2 a3 a4', 'b', 'a4'],
  ['a1 a2 a3 b9', 'b', 'a3'],
  ['a1 a2 b9', 'b', undefined],
  ['a1+ a2+ a3+ b1', 'c', undefined],
  ['a1+ a2+ a3 a4', 'b', 'a4'],
  ['a1 b1 c1', 'd', undefined],
  ['a1 a5 b1 b7 c1', 'd', 'b7'],
  ['a1 a5 a3 b1 b7 c1', 'd', 'a5'],
];

it.each(cases)('%s, while a job of %s waits: %s', (text, tenant, putBack) => {
  const place = placeFor(waits(tenant), placesOf(text), NOW_MS);
  expect(place && `${place.tenant}${place.order}`).toBe(putBack);
});

it("a key's first place is given to it at once, another one after 2 s", () => {
  const now = waits('b', NOW_MS - 1999);
  expect(placeFor(now, placesOf('a1 a2 a3'), NOW_MS)?.order).toBe(3);
  expect(placeFor(now, placesOf('a1 a2 a3 b1'), NOW_MS)).toBeUndefined();
});

const queue = useQueue();
afterEach(() => {
  vi.useRealTimers();
});

/** A worker whose jobs of the key `slow` never end of themselves. */
function openWorker(concurrency: number) {
  const begun: string[] = [];
  const running = new Set<string>();
  queue().consume(
    async ({ jobId, payload, signal, takeTurn }: ExtractionJob) => {
      begun.push(payload.tenant);
      running.add(jobId);
      try {
        if (payload.tenant === 'slowslow') await aborted(signal);
        await takeTurn();
        return resultOf(jobId);
      } finally {
        running.delete(jobId);
      }
    },
    { concurrency, takesTurns: true },
  );
  return { begun, running };
}

it('sources that never end keep nobody else waiting, also when others have had many turns', {
  timeout: 60_000,
}, async () => {
  const { running } = openWorker(6);
  const slow = await queue().submitMany(30, 'slowslow');
  await until('all places are taken', () => running.size === 6);
  for (let nth = 0; nth < 40; nth++) {
    await queue().reaches(await queue().submit('quickone'), 'completed');
  }
  const states = await Promise.all(slow.map((jobId) => queue().jobs.read(jobId)));
  expect(states.filter((job) => job?.status === 'failed')).toEqual([]);
  await until('the slow ones have all places again', () => running.size === 6);
});

// With a `see` in src/jobs/share-watch.ts that does nothing the first of them waits in vain.
it('a key that has none is served by the message of its submission, without the look that makes up for lost ones', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { running } = openWorker(6);
  await queue().submitMany(10, 'slowslow');
  await until('the worker hears of submissions', async () => {
    const [, listening] = (await queue().redis.pubsub('NUMSUB', ACCEPTED_CHANNEL)) as [string, number];
    return listening === 1;
  });
  for (let nth = 0; nth < 10; nth++) {
    // One that comes while a place is free is told of to nobody who would have to make room.
    await until('the slow ones have all places', () => running.size === 6);
    await queue().reaches(await queue().submit('quickone'), 'completed');
  }
});

it('a key with several jobs gets its share of what another one holds, and no try is spent', {
  timeout: 60_000,
}, async () => {
  const { running, begun } = openWorker(6);
  const slow = await queue().submitMany(10, 'slowslow');
  await until('all places are taken', () => running.size === 6);
  const others = await Promise.all(
    ['otherone', 'othertwo'].flatMap((key) => [queue().submit(key), queue().submit(key)]),
  );
  await Promise.all(others.map((jobId) => queue().reaches(jobId, 'completed')));
  await until('the slow ones have all places again', () => running.size === 6);
  expect(begun.filter((tenant) => tenant !== 'slowslow')).toHaveLength(4);
  const bull = queue().queue('extract');
  const tries = await Promise.all(slow.map(async (jobId) => (await bull.getJob(jobId))?.attemptsMade));
  expect(new Set(tries)).toEqual(new Set([0]));
});
