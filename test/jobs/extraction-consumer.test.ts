/** What Redis, other workers and a shutdown demand of whoever runs a job. */

import { ServiceError } from 'soundpost-contract/errors';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import type { ExtractionJob } from '../../src/jobs/extraction-consumer.ts';
import { jobKey, queueKey } from './bullmq-keys.ts';
import { resultOf } from './job-result.ts';
import { aborted, useQueue } from './queue-fixture.ts';

const queue = useQueue();

/** No worker loses one of these because its machine is busy for a while. */
const SHORT_LOCK = { lockSeconds: 5 };

/** Steps that hold every job until it is let go, or told to end. */
function holding() {
  const started: ExtractionJob[] = [];
  const reasons: unknown[] = [];
  const letGo = Promise.withResolvers<void>();
  return {
    started,
    reasons,
    letGo: () => letGo.resolve(),
    run: async (job: ExtractionJob) => {
      started.push(job);
      try {
        await Promise.race([letGo.promise, aborted(job.signal)]);
      } catch (error) {
        reasons.push(error);
        throw error;
      }
      return resultOf(job.jobId);
    },
  };
}

/** Whether somebody waits for a job. @param clients CLIENT LIST */
const isBlocked = (clients: unknown): boolean => / flags=\w*b/.test(String(clients));

describe('a worker whose lock is gone', () => {
  it('gives the job up, and another one finishes it', async () => {
    const { redis } = queue();
    const first = holding();
    queue().consume(first.run, SHORT_LOCK);
    const jobId = await queue().submit();
    await expect.poll(() => first.started.length).toBe(1);
    await redis.del(`${jobKey('extract', jobId)}:lock`);
    await expect
      .poll(() => first.reasons)
      .toEqual([expect.objectContaining({ name: 'JobAborted', why: 'lost' })]);
    first.letGo();
    expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({ status: 'completed' });
    expect(first.started.map((attempt) => attempt.jobId)).toEqual([jobId, jobId]);
    expect(new Set(first.started.map(({ attemptToken }) => attemptToken)).size).toBe(2);
  });

  it('is given the same job again while its first attempt still ends, and keeps that one', async () => {
    const { redis } = queue();
    const attempts: ExtractionJob[] = [];
    const firstMayEnd = Promise.withResolvers<void>();
    const secondMayEnd = Promise.withResolvers<void>();
    queue().consume(
      async (job) => {
        attempts.push(job);
        await (attempts.length === 1 ? firstMayEnd.promise : secondMayEnd.promise);
        job.signal.throwIfAborted();
        return resultOf(job.jobId);
      },
      { ...SHORT_LOCK, concurrency: 2 },
    );
    const jobId = await queue().submit();
    const lock = `${jobKey('extract', jobId)}:lock`;
    await expect.poll(() => attempts.length).toBe(1);
    await redis.del(lock);
    await expect.poll(() => attempts.length).toBe(2);
    expect(attempts[0]?.signal.aborted).toBe(true);
    const held = await redis.get(lock);
    firstMayEnd.resolve();
    // Longer than the lock lasts without renewal, told by Redis's own clock in whole seconds.
    const later = Number((await redis.time())[0]) + SHORT_LOCK.lockSeconds + 2;
    await until('time has passed', async () => Number((await redis.time())[0]) >= later);
    expect(await redis.get(lock)).toBe(held);
    secondMayEnd.resolve();
    expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({ status: 'completed' });
    expect(attempts).toHaveLength(2);
  });

  it('cannot end the job that another has by now', async () => {
    const { redis } = queue();
    const begun = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const stale = Promise.withResolvers<void>();
    queue().consume(async ({ jobId }) => {
      begun.resolve();
      await gate.promise;
      stale.resolve();
      return { ...resultOf(jobId), voice: { storageKey: 'stale', fitsVoiceBubble: true, seconds: 1 } };
    });
    const jobId = await queue().submit();
    await begun.promise;
    await redis.set(`${jobKey('extract', jobId)}:lock`, 'the other worker');
    gate.resolve();
    await stale.promise;
    // The next job comes after the refused ending on the same worker.
    const next = await queue().submit();
    await queue().reaches(next, 'completed');
    expect(await queue().jobs.read(jobId)).toMatchObject({ status: 'processing', result: null });
  });
});

describe('a job that fails', () => {
  it.each([
    [
      'for want of its source is not tried again',
      new ServiceError('DOWNLOAD_FAILED', 'the host answered 404'),
      1,
    ],
    ['for a reason of our own has three tries', new Error('a tool is missing'), 3],
  ])('%s', async (_, error, tries) => {
    const tried: string[] = [];
    queue().consume(async ({ jobId }) => {
      tried.push(jobId);
      throw error;
    });
    const jobId = await queue().submit();
    const { error: told } = await queue().reaches(jobId, 'failed');
    expect(told?.code).toBe(error instanceof ServiceError ? error.code : 'INTERNAL_ERROR');
    expect(tried).toHaveLength(tries);
  });
});

describe('closing a worker', () => {
  it('lets a running job finish', async () => {
    const steps = holding();
    const consumer = queue().consume(steps.run);
    const [running = '', waiting = ''] = await queue().submitMany(2);
    await expect.poll(() => steps.started.length).toBe(1);
    const closed = consumer.close(20_000);
    steps.letGo();
    await closed;
    expect(await queue().jobs.read(running)).toMatchObject({ status: 'completed' });
    expect(await queue().jobs.read(waiting)).toMatchObject({ status: 'queued' });
    expect(steps.reasons).toEqual([]);
  });

  it('hands a job back that takes too long, to the front of the queue, and another worker finishes it', async () => {
    const { redis } = queue();
    const steps = holding();
    const consumer = queue().consume(steps.run);
    const [running = '', waiting = ''] = await queue().submitMany(2);
    await expect.poll(() => steps.started.length).toBe(1);
    await consumer.close(0);
    expect(steps.reasons).toEqual([expect.objectContaining({ name: 'JobAborted', why: 'shutdown' })]);
    expect(await redis.zrange(queueKey('extract', 'prioritized'), '0', '-1')).toEqual([running, waiting]);
    expect(await redis.exists(`${jobKey('extract', running)}:lock`)).toBe(0);
    expect(await redis.hget(jobKey('extract', running), 'atm')).toBeNull();
    queue().consume(async ({ jobId }) => resultOf(jobId));
    await queue().reaches(running, 'completed');
  });

  it('hands a job back to workers that have nothing to do', async () => {
    const steps = holding();
    const first = queue().consume(steps.run);
    const jobId = await queue().submit();
    await expect.poll(() => steps.started.length).toBe(1);
    queue().consume(async (job) => resultOf(job.jobId));
    await until('the other worker waits for a job', async () => {
      return isBlocked(await queue().redis.client('LIST'));
    });
    await first.close(0);
    // One that was not woken would still be blocked, with the job waiting: it looks by itself after 5 s.
    const looks = await queue()
      .redis.multi()
      .client('LIST')
      .hget(jobKey('extract', jobId), 'finishedOn')
      .exec();
    const [clients, finishedOn] = (looks ?? []).map(([, answer]) => answer);
    expect(finishedOn !== null || !isBlocked(clients)).toBe(true);
    await queue().reaches(jobId, 'completed');
  });
});
