/** What Redis, other workers and a shutdown demand of whoever runs a job. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { ExtractionJob } from '../../src/queue/extraction-consumer.ts';
import { jobKey, queueKey } from '../../src/queue/names.ts';
import { until } from '../until.ts';
import { aborted, resultOf, useQueue } from './queue-fixture.ts';

const queue = useQueue();

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

describe('a worker whose lock is gone', () => {
  it('gives the job up, and another one finishes it', async () => {
    const { redis } = queue();
    const first = holding();
    queue().consume(first.run, { lockSeconds: 0.4 });
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
      const clients = String(await queue().redis.client('LIST'));
      return clients.split('\n').filter((line) => / flags=\w*b/.test(line)).length === 1;
    });
    await first.close(0);
    await until(
      'the other worker has it',
      async () => (await queue().jobs.read(jobId))?.status === 'completed',
      3000,
    );
  });
});

describe('a job whose worker is killed', () => {
  async function startWorker() {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL('./worker-process.ts', import.meta.url)), queue().server.url, '0.5'],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    return {
      async killInTheMiddleOfAJob() {
        const [jobId] = await once(child.stdout, 'data');
        child.kill('SIGKILL');
        await once(child, 'exit');
        return String(jobId).trim();
      },
    };
  }

  it('is done by another one', async () => {
    const jobId = await queue().submit();
    const worker = await startWorker();
    expect(await worker.killInTheMiddleOfAJob()).toBe(jobId);
    queue().consume(async (job) => resultOf(job.jobId), { lockSeconds: 0.5 });
    expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({ status: 'completed' });
  });

  it('three times has failed, and no worker is given it any more', async () => {
    const jobId = await queue().submit();
    for (let kills = 0; kills < 3; kills += 1) {
      const worker = await startWorker();
      expect(await worker.killInTheMiddleOfAJob()).toBe(jobId);
    }
    let runs = 0;
    queue().consume(
      async (job) => {
        runs += 1;
        return resultOf(job.jobId);
      },
      { lockSeconds: 0.5 },
    );
    expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({
      status: 'failed',
      error: { code: 'INTERNAL_ERROR' },
    });
    expect(runs).toBe(0);
  });
});
