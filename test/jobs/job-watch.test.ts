/** What an observer is told of jobs: each of them once, when it has ended for good. */

import { ServiceError } from 'soundpost-contract/errors';
import { type Observer, silentObserver } from 'soundpost-kit/observe/metrics/observer';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { JobQueue } from '../../src/jobs/job-queue.ts';
import { resultOf } from './job-result.ts';
import { logger, newJobId, payloadOf, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();

function listening(): { observer: Observer; told: unknown[] } {
  const told: unknown[] = [];
  const observer: Observer = {
    ...silentObserver,
    jobTaken: (waited) => told.push(['taken', waited < 10]),
    jobEnded: (end, seconds) => told.push([end, seconds !== undefined && seconds < 10]),
  };
  return { observer, told };
}

it('a job that is tried again is told when it ends, and taken up once', async () => {
  const { observer, told } = listening();
  let tries = 0;
  queue().consume(
    async ({ jobId }) => {
      tries += 1;
      if (tries === 1) throw new Error('a full disk');
      return resultOf(jobId);
    },
    { observer },
  );
  await queue().reaches(await queue().submit(), 'completed');
  await until('its end was told', () => told.length >= 2);
  expect([tries, told]).toEqual([
    2,
    [
      ['taken', true],
      [{ state: 'completed' }, true],
    ],
  ]);
});

it('one that fails for good is told with its code, one whose tries are used up as an INTERNAL_ERROR', async () => {
  const { observer, told } = listening();
  let error: Error = new ServiceError('INVALID_VIDEO', 'no video');
  queue().consume(() => Promise.reject(error), { observer });
  await queue().reaches(await queue().submit(), 'failed');
  await until('its end was told', () => told.length >= 2);
  expect(told.splice(0)).toEqual([
    ['taken', true],
    [{ state: 'failed', code: 'INVALID_VIDEO' }, true],
  ]);
  error = new Error('a full disk');
  await queue().reaches(await queue().submit(), 'failed');
  await until('its end was told', () => told.length >= 2);
  expect(told).toEqual([
    ['taken', true],
    [{ state: 'failed', code: 'INTERNAL_ERROR' }, true],
  ]);
});

it('a submission is told with what became of it, and a job that is cancelled while it waits as ended', async () => {
  const told: unknown[] = [];
  const jobs = new JobQueue({
    holdUpload: async () => true,
    redis: queue().redis,
    limits: { submitPerMinute: 100, unfinishedPerTenant: 2, queueLimit: 100 },
    recordSeconds: 3600,
    logger,
    observer: {
      ...silentObserver,
      jobsSubmitted: (outcome, count) => told.push([outcome, count]),
      jobEnded: (end, seconds) => told.push([end, seconds]),
    },
  });
  queue().onClose(() => jobs.close());
  const some = (count: number) =>
    Array.from({ length: count }, () => ({ jobId: newJobId(), payload: payloadOf(TENANT) }));
  const two = some(2);
  await jobs.submit(TENANT, two);
  await jobs.submit(TENANT, some(1));
  await jobs.cancel(two[0]?.jobId ?? '');
  expect(told).toEqual([
    ['accepted', 2],
    ['too_many_unfinished', 1],
    [{ state: 'failed', code: 'JOB_CANCELLED' }, undefined],
  ]);
});
