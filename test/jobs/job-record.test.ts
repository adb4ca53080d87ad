/** How the state of a job follows from BullMQ's record of it, read from jobs that really went that way. */

import { ServiceError } from 'soundpost-contract/errors';
import { describe, expect, it } from 'vitest';
import { jobKey } from './bullmq-keys.ts';
import { resultOf } from './job-result.ts';
import { aborted, useQueue } from './queue-fixture.ts';

const queue = useQueue();

describe('a job', () => {
  it('that nobody submitted has no record', async () => {
    expect(await queue().jobs.read('job_0123456789abcdef')).toBeUndefined();
  });

  it('that waits is queued', async () => {
    const jobId = await queue().submit();
    expect(await queue().jobs.read(jobId)).toMatchObject({
      jobId,
      status: 'queued',
      progress: null,
      result: null,
      error: null,
      startedAtMs: null,
      finishedAtMs: null,
    });
  });

  it('that a worker has is processing, and shows what the worker reported', async () => {
    queue().consume(async ({ report, signal }) => {
      report({ progress: 42, currentStep: 'extracting_audio', inputFile: null });
      return aborted(signal);
    });
    const jobId = await queue().submit();
    await expect
      .poll(() => queue().jobs.read(jobId))
      .toMatchObject({ status: 'processing', progress: { progress: 42, currentStep: 'extracting_audio' } });
  });

  it('that returned is completed', async () => {
    queue().consume(async ({ jobId }) => resultOf(jobId));
    const jobId = await queue().submit();
    const record = await queue().reaches(jobId, 'completed', 'failed');
    expect(record).toMatchObject({ status: 'completed', result: resultOf(jobId), error: null });
    expect(record.finishedAtMs).toBeGreaterThanOrEqual(record.startedAtMs ?? Number.POSITIVE_INFINITY);
  });

  it('whose fault is the source’s failed with that error at the first try, and keeps the step', async () => {
    let tries = 0;
    queue().consume(async ({ report }) => {
      tries += 1;
      report({ progress: 30, currentStep: 'analyzing_video', inputFile: null });
      throw new ServiceError('INVALID_VIDEO', 'the file is no media', { details: 'no container' });
    });
    const jobId = await queue().submit();
    expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({
      status: 'failed',
      result: null,
      error: { code: 'INVALID_VIDEO', message: 'the file is no media', details: 'no container' },
      progress: { currentStep: 'analyzing_video' },
    });
    expect(tries).toBe(1);
  });

  it('that failed once and then returned is completed, although the failure stays in the record', async () => {
    let tries = 0;
    queue().consume(async ({ jobId }) => {
      tries += 1;
      if (tries === 1) throw new Error('the disk is full');
      return resultOf(jobId);
    });
    const jobId = await queue().submit();
    expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({
      status: 'completed',
      error: null,
    });
    expect(await queue().redis.hget(jobKey('extract', jobId), 'failedReason')).toContain('INTERNAL_ERROR');
  });

  it('that fails through our fault is tried three times and shows nothing of the cause', async () => {
    let tries = 0;
    queue().consume(async () => {
      tries += 1;
      throw new Error('ENOSPC /var/lib/soundpost');
    });
    const jobId = await queue().submit();
    const { error } = await queue().reaches(jobId, 'failed');
    expect(error).toEqual({ code: 'INTERNAL_ERROR', message: 'the job could not be finished' });
    expect(tries).toBe(3);
  });

  it('whose failure is none of ours reads as INTERNAL_ERROR', async () => {
    const { redis } = queue();
    const jobId = await queue().submit();
    const hash = jobKey('extract', jobId);
    for (const failedReason of [
      'job stalled more than allowable limit',
      '{"code":"NO_SUCH_CODE","message":"?"}',
      '',
    ]) {
      await redis.hset(hash, { failedReason, processedOn: 1, finishedOn: 2 });
      expect(await queue().jobs.read(jobId)).toMatchObject({
        status: 'failed',
        error: { code: 'INTERNAL_ERROR' },
      });
    }
  });

  it('that was cancelled while it ended stays cancelled, whatever the worker made', async () => {
    const { redis } = queue();
    queue().consume(async ({ jobId }) => resultOf(jobId));
    const jobId = await queue().submit();
    await queue().reaches(jobId, 'completed');
    await redis.hset(jobKey('extract', jobId), 'spCancelled', '1');
    expect(await queue().jobs.read(jobId)).toMatchObject({
      status: 'failed',
      result: null,
      error: { code: 'JOB_CANCELLED' },
    });
  });

  it('whose files were erased says so', async () => {
    queue().consume(async ({ jobId }) => resultOf(jobId));
    const jobId = await queue().submit();
    expect(await queue().reaches(jobId, 'completed')).toMatchObject({ erased: false });
    await queue().jobs.markErased(jobId);
    expect(await queue().jobs.read(jobId)).toMatchObject({ status: 'completed', erased: true });
  });
});

describe('progress', () => {
  it('never goes down, neither within a try nor from one to the next', async () => {
    const seen: number[] = [];
    const steps = [60, 20, 70];
    let tries = 0;
    const readings = Promise.withResolvers<void>();
    const look = async (jobId: string, wanted: (progress: number, step: string | undefined) => boolean) =>
      expect
        .poll(async () => {
          const record = await queue().jobs.read(jobId);
          if (record?.progress) seen.push(record.progress.progress);
          return wanted(record?.progress?.progress ?? -1, record?.progress?.currentStep);
        })
        .toBe(true);
    queue().consume(async ({ jobId, report }) => {
      tries += 1;
      const [first = 0, lower = 0, higher = 0] = tries === 1 ? steps : [5, 10, 90];
      report({ progress: first, currentStep: 'downloading_video', inputFile: null });
      await look(jobId, (progress, step) => progress >= first && step === 'downloading_video');
      report({ progress: lower, currentStep: 'analyzing_video', inputFile: null });
      await look(jobId, (progress, step) => progress >= lower && step === 'analyzing_video');
      report({ progress: higher, currentStep: 'finalizing', inputFile: null });
      await look(jobId, (progress, step) => progress >= higher && step === 'finalizing');
      if (tries === 1) throw new Error('the disk is full');
      readings.resolve();
      return resultOf(jobId);
    });
    await queue().submit();
    await readings.promise;
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(new Set(seen.filter((progress) => progress > 0))).toEqual(new Set([60, 70, 90]));
  });

  it('is only written by who holds the job', async () => {
    const { redis } = queue();
    const went = Promise.withResolvers<unknown>();
    queue().consume(async ({ jobId, report, signal }) => {
      report({ progress: 10, currentStep: 'downloading_video', inputFile: null });
      await expect.poll(() => queue().jobs.read(jobId)).toMatchObject({ progress: { progress: 10 } });
      // Another worker has been given the job.
      await redis.set(`${jobKey('extract', jobId)}:lock`, 'the other worker');
      report({ progress: 50, currentStep: 'extracting_audio', inputFile: null });
      await aborted(signal).catch(went.resolve);
      throw signal.reason;
    });
    const jobId = await queue().submit();
    expect(await went.promise).toMatchObject({ name: 'JobAborted', why: 'lost' });
    expect(await queue().jobs.read(jobId)).toMatchObject({
      status: 'processing',
      progress: { progress: 10 },
    });
  });
});
