/** Cancelling a job in every state that it can be in. */

import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { markCancelled } from '../../src/jobs/bullmq-internals.ts';
import { CANCEL_CHANNEL, completionId } from '../../src/jobs/names.ts';
import { jobKey, queueKey } from './bullmq-keys.ts';
import { resultOf } from './job-result.ts';
import { aborted, destinedPayload, newJobId, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();

const cancelled = { status: 'failed', error: { code: 'JOB_CANCELLED' } };

describe('cancelling', () => {
  it('a job that is not there says so', async () => {
    expect(await queue().jobs.cancel('job_0123456789abcdef')).toBe('missing');
  });

  it('a waiting job ends it at once, and what waits for its end is released', async () => {
    const jobId = await queue().submit('tenant01', { webhook: 'https://client.example/hook' });
    expect(await queue().jobs.cancel(jobId)).toBe('claimed');
    const record = await queue().jobs.read(jobId);
    expect(record).toMatchObject(cancelled);
    expect(record?.finishedAtMs).not.toBeNull();
    expect(await queue().redis.zrange(queueKey('extract', 'failed'), '0', '-1')).toEqual([jobId]);
    const parent = await queue().queue('completion').getJob(completionId(jobId));
    expect(await parent?.getState()).toBe('waiting');
    let runs = 0;
    queue().consume(async () => {
      runs += 1;
      return resultOf(jobId);
    });
    const next = await queue().submit();
    await queue().reaches(next, 'completed');
    expect(runs).toBe(1);
  });

  it('of a waiting job, only what is shown of its destination stays', async () => {
    const jobId = newJobId();
    await queue().take(TENANT, { jobId, payload: destinedPayload(jobId) });
    expect(await queue().redis.hget(jobKey('extract', jobId), 'data')).toContain('sealed');
    expect(await queue().jobs.cancel(jobId)).toBe('claimed');
    expect((await queue().jobs.read(jobId))?.payload.destinations).toEqual({
      job: { url: 'https://bucket.example/talk.mp3' },
      outputs: {},
    });
    expect(await queue().redis.hget(jobKey('extract', jobId), 'data')).not.toContain('sealed');
  });

  it('a job that waits for its next try ends it at once', async () => {
    const disk = queue().disk();
    const spendTry = async () => {
      // Else the next try might come before the cancellation.
      await disk.becomes('low');
      throw new Error('the disk is full');
    };
    queue().consume(spendTry, { probes: disk.probes });
    const jobId = await queue().submit();
    await expect.poll(() => queue().redis.zcard(queueKey('extract', 'delayed'))).toBe(1);
    expect(await queue().jobs.cancel(jobId)).toBe('claimed');
    expect(await queue().jobs.read(jobId)).toMatchObject(cancelled);
    expect(await queue().redis.zcard(queueKey('extract', 'delayed'))).toBe(0);
  });

  it('a running job is shown at once and stops its steps', async () => {
    const reason = Promise.withResolvers<unknown>();
    // Processing is shown a moment before the steps begin; cancelled in between, they never do.
    const begun = Promise.withResolvers<void>();
    queue().consume(({ signal }) => {
      begun.resolve();
      return aborted(signal).catch((error: unknown) => {
        reason.resolve(error);
        throw error;
      });
    });
    const jobId = await queue().submit();
    await begun.promise;
    expect(await queue().jobs.cancel(jobId)).toBe('notified');
    expect(await queue().jobs.read(jobId)).toMatchObject(cancelled);
    expect(await reason.promise).toMatchObject({ name: 'JobAborted', why: 'cancelled' });
    await until('the job is ended', async () => (await queue().jobs.read(jobId))?.finishedAtMs);
    expect(await queue().redis.zrange(queueKey('extract', 'failed'), '0', '-1')).toEqual([jobId]);
  });

  it('reaches the worker also when the message is lost', async () => {
    const { redis } = queue();
    const begun = Promise.withResolvers<void>();
    const reason = Promise.withResolvers<unknown>();
    queue().consume(({ signal }) => {
      begun.resolve();
      return aborted(signal).catch((error: unknown) => {
        reason.resolve(error);
        throw error;
      });
    });
    const jobId = await queue().submit();
    await begun.promise;
    await until('the worker listens', async () => {
      const [, listeners] = (await redis.pubsub('NUMSUB', CANCEL_CHANNEL)) as [string, number];
      return listeners === 1;
    });
    // The subscriber's connection is away for just this moment, so nobody hears of it.
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    expect(await queue().jobs.cancel(jobId)).toBe('notified');
    expect(await reason.promise).toMatchObject({ why: 'cancelled' });
  });

  it('by an API that died in the middle is finished by a worker that never starts the job', async () => {
    const { redis } = queue();
    const jobId = await queue().submit();
    expect(await markCancelled(redis, jobId, 'the token of an API that died')).toBe('claimed');
    // As if the five seconds of the claim were over.
    await redis.del(`${jobKey('extract', jobId)}:lock`);
    let runs = 0;
    queue().consume(
      async () => {
        runs += 1;
        return resultOf(jobId);
      },
      { lockSeconds: 0.2 },
    );
    await until('the job is ended', async () => (await queue().jobs.read(jobId))?.finishedAtMs);
    expect(await queue().jobs.read(jobId)).toMatchObject(cancelled);
    expect(runs).toBe(0);
  });

  it('an ended job changes nothing', async () => {
    queue().consume(async ({ jobId }) => resultOf(jobId));
    const jobId = await queue().submit();
    await queue().reaches(jobId, 'completed');
    expect(await queue().jobs.cancel(jobId)).toBe('finished');
    expect(await queue().jobs.read(jobId)).toMatchObject({ status: 'completed' });
  });

  it('many jobs just as they start loses none', async () => {
    queue().consume(({ signal }) => aborted(signal), { concurrency: 8 });
    const outcomes: string[] = [];
    for (let round = 0; round < 24; round += 1) {
      const jobId = await queue().submit();
      outcomes.push(await queue().jobs.cancel(jobId));
      await until('the job is ended', async () => (await queue().jobs.read(jobId))?.finishedAtMs);
      expect(await queue().jobs.read(jobId)).toMatchObject(cancelled);
    }
    expect(outcomes).toHaveLength(24);
  });
});
