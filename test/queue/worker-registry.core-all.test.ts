/** What becomes of the jobs of a worker that has died, or is silent, long before their locks run out. */
import { expect, it } from 'vitest';
import { WORKER_BEATS_KEY } from '../../src/queue/names.ts';
import { currentRun } from '../by-run.ts';
import { until } from '../until.ts';
import { resultOf } from './job-result.ts';
import { useQueue } from './queue-fixture.ts';
import { startWorkerProcess } from './worker-child.ts';

const queue = useQueue();

/** None runs out in a test. */
const LONG_LOCK = { lockSeconds: 300 };
const ELSEWHERE = 'another machine';

const lostStarts = (jobId: string) => queue().redis.hget(`{soundpost}:extract:${jobId}`, 'spLeftBy');

/** From now until another worker begins the job, seconds. */
async function begunAgain(jobId: string): Promise<number> {
  const since = performance.now();
  const begun = Promise.withResolvers<number>();
  queue().consume(async (job) => {
    expect(job.jobId).toBe(jobId);
    begun.resolve((performance.now() - since) / 1000);
    return resultOf(job.jobId);
  }, LONG_LOCK);
  return begun.promise;
}

// Without fateOf in src/queue/worker-registry.ts it takes 60 s; with `handOn` of nothing it waits for the lock.
it.runIf(currentRun === 'core')("a dead neighbour's job is begun again within 5 s", async () => {
  const jobId = await queue().submit();
  const worker = startWorkerProcess(queue(), LONG_LOCK);
  expect(await worker.killWithJobs()).toEqual([jobId]);
  expect(await begunAgain(jobId)).toBeLessThan(5);
  expect(await lostStarts(jobId)).toMatch(/^\w+@\d+$/);
});

it.runIf(currentRun === 'all')('one of another machine, within 12 s', async () => {
  const jobId = await queue().submit();
  const worker = startWorkerProcess(queue(), { ...LONG_LOCK, home: ELSEWHERE });
  expect(await worker.killWithJobs()).toEqual([jobId]);
  expect(await begunAgain(jobId)).toBeLessThan(12);
});

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
  );
  expect(begun).toBe(0);
});
