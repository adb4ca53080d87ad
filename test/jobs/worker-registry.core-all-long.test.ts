/** What becomes of the jobs of a worker that has died, or is silent, long before their locks run out. */

import { byRun, currentRun } from 'soundpost-testing/by-run';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { WORKER_BEATS_KEY } from '../../src/jobs/names.ts';
import { percentile, report } from '../faults/runs.ts';
import { resultOf } from './job-result.ts';
import { useQueue } from './queue-fixture.ts';
import { startWorkerProcess } from './worker-child.ts';

const queue = useQueue();

/** None runs out in a test. */
const LONG_LOCK = { lockSeconds: 300 };
const ELSEWHERE = 'another machine';

interface BegunAgain {
  readonly seconds: number;
  /** Of the worker that began it, one a second: it stands still where the machine does. */
  readonly beats: number;
}

/** From now until another worker begins the job. */
async function begunAgain(jobId: string): Promise<BegunAgain> {
  const since = performance.now();
  let seconds: number | undefined;
  const consumer = queue().consume(async (job) => {
    expect(job.jobId).toBe(jobId);
    seconds = (performance.now() - since) / 1000;
    return resultOf(job.jobId);
  }, LONG_LOCK);
  const beats = new Set<string>();
  const took = await until(
    'it is begun again',
    async () => {
      const [, latest = ''] = await queue().redis.zrange(WORKER_BEATS_KEY, '-1', '-1', 'WITHSCORES');
      beats.add(latest);
      return seconds;
    },
    100_000,
  );
  await queue().reaches(jobId, 'completed');
  await consumer.close(0);
  return { seconds: took, beats: beats.size };
}

/** Kills a worker with a job as often as this run does, and says how long it took until another one had begun it. */
async function killedAndBegunAgain(row: string, home?: string): Promise<BegunAgain> {
  const seconds: number[] = [];
  let most = 0;
  for (let kills = 0; kills < byRun({ core: 1, all: 1, long: 20 }); kills += 1) {
    const jobId = await queue().submit();
    const worker = startWorkerProcess(queue(), { ...LONG_LOCK, home });
    expect(await worker.killWithJobs()).toEqual([jobId]);
    const again = await begunAgain(jobId);
    seconds.push(again.seconds);
    most = Math.max(most, again.beats);
  }
  const p95 = percentile(seconds, 0.95);
  report(row, { kills: seconds.length, p50: percentile(seconds, 0.5), p95, max: percentile(seconds, 1) });
  return { seconds: p95, beats: most };
}

/** The promise is in seconds, measured alone (--long). Beside other tests the beats are counted, and some more are borne: who heard nothing for 3 s listens anew. */
function expectWithin({ seconds, beats }: BegunAgain, longest: number, most: number): void {
  if (currentRun === 'long') expect(seconds).toBeLessThan(longest);
  else expect(beats).toBeLessThan(most);
}

// Without fateOf in src/jobs/worker-registry.ts it takes 60 s; with `handOn` of nothing it waits for the lock.
it.skipIf(currentRun === 'all')(
  "a dead neighbour's job is begun again within 5 s",
  async () => {
    const row = 'SIGKILL of a worker, another one on the same machine';
    // Of another machine it takes nine at least.
    expectWithin(await killedAndBegunAgain(row), 5, 9);
  },
  300_000,
);

it.skipIf(currentRun === 'core')(
  'one of another machine, within 12 s',
  async () => {
    const row = 'SIGKILL of a worker, another one elsewhere';
    expectWithin(await killedAndBegunAgain(row, ELSEWHERE), 12, 30);
  },
  600_000,
);

// With every start that was left counted as lost the job fails at its fourth.
it.runIf(currentRun === 'all')('a frozen worker loses its job, and the job no start', async () => {
  const jobId = await queue().submit();
  const workers = ['one', 'another'].map((home) => startWorkerProcess(queue(), { ...LONG_LOCK, home }));
  const begun = workers.map((worker) => worker.begun());
  let at = await Promise.race(begun.map((first, index) => first.then(() => index)));
  for (let freezes = 0; freezes < 4; freezes += 1) {
    const other = 1 - at;
    workers[at]?.freeze();
    expect(await begun[other]).toBe(jobId);
    begun[at] = workers[at]?.begun() ?? begun[at] ?? Promise.resolve('');
    workers[at]?.wake();
    at = other;
  }
  workers[at]?.freeze();
  const other = workers[1 - at];
  other?.freeze();
  await begunAgain(jobId);
  expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({ status: 'completed' });
});

// A beat that did not go on after the first would have the job begun twice.
it.runIf(currentRun === 'all')('a worker that is busy for long keeps its job', async () => {
  const jobId = await queue().submit();
  const worker = startWorkerProcess(queue(), { ...LONG_LOCK, home: ELSEWHERE });
  expect(await worker.begun()).toBe(jobId);
  let begun = 0;
  queue().consume(async (job) => {
    begun += 1;
    return resultOf(job.jobId);
  }, LONG_LOCK);
  const beats = queue().redis;
  const [child = ''] = await beats.zrange(WORKER_BEATS_KEY, '0', '0');
  const heardMs = async (): Promise<number> => Number(await beats.zscore(WORKER_BEATS_KEY, child));
  const firstMs = await heardMs();
  await until(
    'it has beaten for longer than the longest silence that is borne',
    async () => (await heardMs()) - firstMs > 12_000,
    60_000,
  );
  expect(begun).toBe(0);
});
