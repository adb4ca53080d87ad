/** Places of a full worker: which one is put back, and that jobs of other keys get theirs whatever stands before them in the queue. */
import { expect, it } from 'vitest';
import type { ExtractionJob } from '../../src/queue/extraction-consumer.ts';
import { type Place, placeToPutBack } from '../../src/queue/share-watch.ts';
import { until } from '../until.ts';
import { resultOf } from './job-result.ts';
import { aborted, useQueue } from './queue-fixture.ts';

const NOW_MS = 1_000_000;
const LONG_AGO_MS = NOW_MS - 2000;

/** `a1 b2+ c3?`: of key a at place 1 of the queue; `+` has an encoder, `?` is in hand. */
function placesOf(text: string, submittedAtMs = LONG_AGO_MS): Place[] {
  return text.split(' ').map((word) => ({
    tenant: word[0] ?? '',
    order: Number.parseInt(word.slice(1), 10),
    state: word.endsWith('+') ? 'turn' : word.endsWith('?') ? 'in-hand' : 'begun',
    submittedAtMs,
  }));
}

const waits = (tenant: string, submittedAtMs = LONG_AGO_MS) => ({ jobId: 'job', tenant, submittedAtMs });

const cases: readonly [places: string, waiting: string, putBack: string | undefined, givenTo?: string][] = [
  ['a1 a2 a3 a4?', 'b', 'a4', 'waiting'],
  ['a1 a2 a3 a4', 'b', 'a4', 'waiting'],
  ['a1 a2 a3 b9?', '', 'a3', 'in-hand'],
  ['a1 a2 b1 b2?', '', undefined],
  ['a1 a2 a3 b1 b2?', '', 'a3', 'in-hand'],
  ['a1+ a2+ a3+ b1', 'c', undefined],
  ['a1+ a2+ a3 a4', 'b', 'a4', 'waiting'],
  ['a1 b1 c1', 'd', undefined],
  ['a1 a5 b1 b2 c1', 'd', 'a5', 'waiting'],
  ['a1 a2 b1 b7 c1 a9?', 'c', 'a9', 'waiting'],
];

it.each(cases)('%s, while a job of %s waits: %s', (text, tenant, putBack, givenTo) => {
  const found = placeToPutBack(placesOf(text), tenant === '' ? undefined : waits(tenant), NOW_MS);
  expect(found && `${found.taken.tenant}${found.taken.order}`).toBe(putBack);
  expect(found?.givenTo).toBe(givenTo);
});

it('what was begun is put back after 2 s, a place in hand at once', () => {
  const now = waits('b', NOW_MS - 1999);
  expect(placeToPutBack(placesOf('a1 a2'), now, NOW_MS)).toBeUndefined();
  expect(placeToPutBack(placesOf('a1 a2 a3?', NOW_MS), now, NOW_MS)?.taken.order).toBe(3);
});

const queue = useQueue();

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
    { concurrency, kept: 1, takesTurns: true },
  );
  return { begun, running };
}

it('sources that never end keep nobody else waiting, also when others have had many turns', {
  timeout: 60_000,
}, async () => {
  const { running } = openWorker(6);
  const slow = await queue().submitMany(30, 'slowslow');
  await until('all places are taken', () => running.size === 5);
  for (let nth = 0; nth < 40; nth++) {
    const startMs = performance.now();
    await queue().reaches(await queue().submit('quickone'), 'completed');
    // Four looks; measured 60 to 300 ms.
    expect(performance.now() - startMs).toBeLessThan(1000);
  }
  // One after the other, they needed the kept place only.
  const states = await Promise.all(slow.map((jobId) => queue().jobs.read(jobId)));
  expect(states.filter((job) => job?.status === 'failed')).toEqual([]);
  expect(running.size).toBe(5);
});

it('a key with several jobs gets its share of what another one holds, and no try is spent', {
  timeout: 60_000,
}, async () => {
  const { running, begun } = openWorker(6);
  const slow = await queue().submitMany(10, 'slowslow');
  await until('all places are taken', () => running.size === 5);
  const others = await Promise.all(
    ['otherone', 'othertwo'].flatMap((key) => [queue().submit(key), queue().submit(key)]),
  );
  await Promise.all(others.map((jobId) => queue().reaches(jobId, 'completed')));
  await until('the slow ones have all places again', () => running.size === 5);
  expect(begun.filter((tenant) => tenant !== 'slowslow')).toHaveLength(4);
  const bull = queue().queue('extract');
  const tries = await Promise.all(slow.map(async (jobId) => (await bull.getJob(jobId))?.attemptsMade));
  expect(new Set(tries)).toEqual(new Set([0]));
});
