/** Jobs that Redis had acknowledged and does not have any more come back, as long as the process lives that accepted them. */

import { createLogger } from 'soundpost-kit/observe/logger';
import { lookAtRate } from 'soundpost-kit/redis/rate';
import { NotReplicated, Replication } from 'soundpost-kit/redis/replication';
import { until } from 'soundpost-testing/until';
import { afterEach, expect, it, vi } from 'vitest';
import { findBatch } from '../../src/jobs/job-index.ts';
import { JobQueue } from '../../src/jobs/job-queue.ts';
import { logger, newJobId, payloadOf, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();
afterEach(() => {
  vi.useRealTimers();
});

async function renewConnections(): Promise<void> {
  await queue().connect('worker').call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
}

/** As a failover that loses all, and what every client sees of it. */
async function loseEverything(): Promise<void> {
  await queue().connect('worker').flushall();
  await renewConnections();
}

it('lost jobs are back under their ids, in their batch', async () => {
  const batchId = 'batch_0123456789abcdef';
  const webhook = 'https://hooks.example/x';
  const jobs = [{}, { webhook }].map((options) => ({
    jobId: newJobId(),
    payload: { ...payloadOf(TENANT, options), batchId },
  }));
  await queue().jobs.submit(TENANT, jobs);
  const before = await Promise.all(jobs.map(({ jobId }) => queue().jobs.read(jobId)));
  await loseEverything();
  for (const [index, { jobId }] of jobs.entries()) {
    const restored = await queue().reaches(jobId, 'queued');
    expect(restored.payload).toEqual(before[index]?.payload);
  }
  await until('the batch is known', () => findBatch(queue().redis, TENANT, batchId));
  expect(await findBatch(queue().redis, TENANT, batchId)).toEqual(jobs.map(({ jobId }) => jobId));
});

it('only what is lost is submitted again, and costs its key nothing', async () => {
  const said: string[] = [];
  const jobs = queue().jobQueue(
    { submitPerMinute: 10 },
    createLogger('warn', { write: (line) => said.push(line) }),
  );
  const [kept, lost] = [newJobId(), newJobId()];
  for (const jobId of [kept, lost]) await jobs.submit(TENANT, [{ jobId, payload: payloadOf(TENANT) }]);
  await queue().redis.del(`{soundpost}:extract:${lost}`);
  const place = await queue().redis.zscore('{soundpost}:extract:prioritized', kept);
  await renewConnections();
  await queue().reaches(lost, 'queued');
  expect(await queue().redis.zscore('{soundpost}:extract:prioritized', kept)).toBe(place);
  await until('it is told', () => said.some((line) => line.includes('"restored":1')));
  expect(await lookAtRate(queue().redis, 'submit', TENANT, 10)).toMatchObject({ remaining: 8 });
});

it('a batch is known again also when its record alone was lost', async () => {
  const batchId = 'batch_0123456789abcdef';
  const jobs = [{ jobId: newJobId(), payload: { ...payloadOf(TENANT), batchId } }];
  await queue().jobs.submit(TENANT, jobs);
  await renewConnections();
  expect(await until('it is known', () => findBatch(queue().redis, TENANT, batchId))).toEqual([
    jobs[0]?.jobId,
  ]);
});

it('what was accepted long ago stays lost: it may have ended, and be gone for good', async () => {
  const old = await queue().submit();
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(Date.now() + 6 * 60 * 1000);
  // Another process, which looks at its own after that of the old one has looked at its.
  const young = newJobId();
  await queue()
    .jobQueue({})
    .submit(TENANT, [{ jobId: young, payload: payloadOf(TENANT) }]);
  await loseEverything();
  await queue().reaches(young, 'queued');
  expect(await queue().jobs.read(old)).toBeUndefined();
});

it('whoever was closed submits nothing any more', async () => {
  const jobs = queue().jobQueue({});
  const gone = newJobId();
  await jobs.submit(TENANT, [{ jobId: gone, payload: payloadOf(TENANT) }]);
  const other = await queue().submit();
  await renewConnections();
  await jobs.close();
  await loseEverything();
  await queue().reaches(other, 'queued');
  expect(await queue().jobs.read(gone)).toBeUndefined();
});

it('jobs that were refused because no replica had them do not come back', async () => {
  // Of a role without a deadline, which might be over first on a busy machine.
  const redis = queue().connect('worker');
  const jobs = new JobQueue({
    holdUpload: async () => true,
    redis: queue().redis,
    limits: { submitPerMinute: 100, unfinishedPerTenant: 100, queueLimit: 100 },
    recordSeconds: 3600,
    replication: new Replication({ redis, replicas: 1 }),
    logger,
  });
  queue().onClose(() => jobs.close());
  const [refused, accepted] = [newJobId(), newJobId()];
  await expect(jobs.submit(TENANT, [{ jobId: refused, payload: payloadOf(TENANT) }])).rejects.toThrow(
    NotReplicated,
  );
  await queue().jobs.submit(TENANT, [{ jobId: accepted, payload: payloadOf(TENANT) }]);
  await loseEverything();
  await queue().reaches(accepted, 'queued');
  expect(await jobs.read(refused)).toBeUndefined();
});
