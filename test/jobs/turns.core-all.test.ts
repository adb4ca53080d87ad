/** Turns at the encoders: a key that has none is not kept waiting by what another one has downloaded ahead, and estimates know a job's place. */
import { setTimeout as work } from 'node:timers/promises';
import { byRun, currentRun } from 'soundpost-testing/by-run';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { estimateOf } from '../../src/api/job-answer.ts';
import type { ExtractionJob } from '../../src/jobs/extraction-consumer.ts';
import { noteJobSeconds } from '../../src/jobs/outlook.ts';
import { Semaphore } from '../../src/jobs/semaphore.ts';
import { resultOf } from './job-result.ts';
import { newJobId, payloadOf, useQueue } from './queue-fixture.ts';

const queue = useQueue({ submitPerMinute: 10_000, unfinishedPerTenant: 1000 });

/** Jobs that have asked for an encoder. */
const asking = new Set<string>();

/** A worker with its encoders, as src/worker/extraction.ts is one; `encode` is what a job does with an encoder. */
function openWorker(encoders: number, ahead: number, encode: (job: ExtractionJob) => Promise<void>): void {
  const encoding = new Semaphore(encoders, encoders);
  queue().consume(
    async (job) => {
      const { jobId, order, signal, takeTurn } = job;
      asking.add(jobId);
      const leave = await encoding.acquire({ order, key: job.payload.tenant, signal });
      try {
        await takeTurn();
        await encode(job);
        return resultOf(jobId);
      } finally {
        leave();
      }
    },
    { concurrency: encoders + ahead, takesTurns: true },
  );
}

it.runIf(currentRun === 'core')(
  'a key that has no encoder gets one at once, beside the jobs that another one has taken up ahead',
  async () => {
    const gates = new Map<string, PromiseWithResolvers<void>>();
    openWorker(1, 4, async ({ jobId }) => {
      const gate = Promise.withResolvers<void>();
      gates.set(jobId, gate);
      await gate.promise;
    });
    const many = await queue().submitMany(8, 'aaaaaaaa');
    await until('the worker is full', () => asking.size === 5);
    const newcomer = await queue().submit('bbbbbbbb');
    await until('the newcomer has an encoder', () => gates.has(newcomer));
    expect([...gates.keys()]).toEqual([many[0], newcomer]);

    for (const jobId of [newcomer, ...many]) {
      const gate = await until('a job has its turn', () => gates.get(jobId));
      expect(gates.size).toBe(jobId === newcomer ? 2 : many.indexOf(jobId) + 2);
      gate.resolve();
      await queue().reaches(jobId, 'completed');
    }
  },
);

it('says how long a job will take from its own place, with others queued', { timeout: 240_000 }, async () => {
  const { jobs, redis } = queue();
  const settings = { workerConcurrency: 8, downloadsAhead: 4 };
  const seconds = { fetching: 0, encoding: 0.2 };
  const inQueue = byRun({ core: 200, all: 1000 });
  const tenants = Array.from({ length: 20 }, (_, nth) => `tenant${String(nth).padStart(2, '0')}`);
  await noteJobSeconds(redis, seconds);
  const submit = (tenant: string) => queue().take(tenant, { jobId: newJobId(), payload: payloadOf(tenant) });
  for (let nth = 0; nth < inQueue; nth += tenants.length) await Promise.all(tenants.map(submit));

  /** In the order in which they ended: by so many the estimates are measured, since a busy machine is slower than they know. */
  const ended: string[] = [];
  openWorker(settings.workerConcurrency, settings.downloadsAhead, async ({ jobId }) => {
    await work(seconds.encoding * 1000);
    await noteJobSeconds(redis, seconds);
    ended.push(jobId);
  });

  const asked: { readonly jobId: string; readonly estimate: number; readonly endedBefore: number }[] = [];
  for (const [nth, tenant] of [...tenants, ...tenants].entries()) {
    // Keys that have none, keys that come again and again, and now and then one that has many waiting.
    const newcomer = `newone${String(nth).padStart(2, '0')}`;
    const own = nth % 8 === 0 ? tenant : nth % 2 === 0 ? newcomer : `again0${tenant.slice(-1)}a`;
    const jobId = newJobId();
    const endedBefore = ended.length;
    const reservation = await jobs.submit(own, [{ jobId, payload: payloadOf(own) }]);
    if (reservation.outcome !== 'reserved') throw new Error(reservation.outcome);
    asked.push({ jobId, estimate: estimateOf(reservation.outlook, settings), endedBefore });
    // A machine that is slow here and fast in the worker may have emptied the queue.
    const most = inQueue + asked.length;
    await until('two more have ended', () => ended.length >= Math.min(endedBefore + 2, most));
  }
  await until('all have ended', () => asked.every(({ jobId }) => ended.includes(jobId)), 180_000);
  const wrong = asked.flatMap(({ jobId, estimate, endedBefore }) => {
    const took = ((ended.indexOf(jobId) + 1 - endedBefore) / settings.workerConcurrency) * seconds.encoding;
    // Keys without a place begin beyond the places, before those that wait, whom that delays.
    return estimate < took / 3 || estimate > took * 2
      ? [`${estimate} s said, ${took.toFixed(2)} s taken`]
      : [];
  });
  expect(wrong.length, wrong.join('\n')).toBeLessThanOrEqual(asked.length / 10);
});
