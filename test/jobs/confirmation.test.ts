/** A job counts once its API has confirmed it: what was refused is never run, and leaves nothing behind (docs/decisions/0031-accepted-or-never.md). */

import { ownKey } from 'soundpost-kit/redis/keys';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { tenantJobsKey } from '../../src/jobs/reservation.ts';
import { resultOf } from './job-result.ts';
import { newJobId, payloadOf, TENANT, useQueue } from './queue-fixture.ts';

// A job is removed sooner than after 10 s, and a busy machine may take its time.
const queue = useQueue({}, { unconfirmedMs: 1000 });
const HOOK = { webhook: 'https://client.example/hook' };
const refusing = {
  alongside: async () => {
    throw new Error('the record of the batch could not be written');
  },
};

/** A worker that notes what it runs. */
function consume(): string[] {
  const ran: string[] = [];
  queue().consume(async ({ jobId }) => {
    ran.push(jobId);
    return resultOf(jobId);
  });
  return ran;
}

it.each([
  ['alone', {}],
  ['with a webhook', HOOK],
])('a job %s whose submission failed after it was added is removed and never run', async (_, options) => {
  const { jobs, redis } = queue();
  const refused = newJobId();
  await expect(
    jobs.submit(TENANT, [{ jobId: refused, payload: payloadOf(TENANT, options) }], refusing),
  ).rejects.toThrow('the record of the batch');
  expect(await jobs.read(refused)).toBeUndefined();
  const ran = consume();
  const accepted = await queue().submit(TENANT, options);
  await queue().reaches(accepted, 'completed');
  await until('it is gone', async () => (await queue().queue('extract').getJob(refused)) === undefined);
  expect(ran).toEqual([accepted]);
  expect(await redis.smembers(ownKey('unfinished', TENANT))).toEqual([accepted]);
  expect(await redis.zrange(tenantJobsKey(TENANT), '0', '-1')).toEqual([accepted]);
});

it('a submission that failed before its job was added gives the place back, although no worker runs', async () => {
  const { jobs, redis } = queue();
  const jobId = newJobId();
  const failing = {
    alongside: async () => {
      await (await queue().queue('extract').getJob(jobId))?.remove();
      throw new Error('it was not added');
    },
  };
  await expect(jobs.submit(TENANT, [{ jobId, payload: payloadOf(TENANT) }], failing)).rejects.toThrow();
  await until('its place is free', async () => (await redis.scard(ownKey('unfinished', TENANT))) === 0);
  expect(await redis.zrange(tenantJobsKey(TENANT), '0', '-1')).toEqual([]);
});

it('a job that was refused and is submitted again under its id is run once', async () => {
  const { jobs } = queue();
  const again = { jobId: newJobId(), payload: payloadOf(TENANT) };
  await expect(jobs.submit(TENANT, [again], { ...refusing, repeated: true })).rejects.toThrow();
  await jobs.submit(TENANT, [again], { repeated: true });
  const ran = consume();
  await queue().reaches(again.jobId, 'completed');
  expect(ran).toEqual([again.jobId]);
});

it('a job that a worker has dropped is added again when it is submitted under its id', async () => {
  const { jobs } = queue();
  const again = { jobId: newJobId(), payload: payloadOf(TENANT) };
  await expect(jobs.submit(TENANT, [again], { ...refusing, repeated: true })).rejects.toThrow();
  const ran = consume();
  await until(
    'it was dropped',
    async () => (await queue().queue('extract').getJob(again.jobId)) === undefined,
  );
  await jobs.submit(TENANT, [again], { repeated: true });
  await queue().reaches(again.jobId, 'completed');
  expect(ran).toEqual([again.jobId]);
});

it('after 30 hangs of an API nothing stands in front of a job that is accepted', async () => {
  const hung = queue().jobQueue({}, undefined, { unconfirmedMs: 10 * 60_000 });
  const over = Promise.withResolvers<void>();
  const jobIds = Array.from({ length: 30 }, newJobId);
  const ran = consume();
  const answers = jobIds.map((jobId) =>
    hung.submit(TENANT, [{ jobId, payload: payloadOf(TENANT) }], { alongside: () => over.promise }),
  );
  const delayed = () => queue().queue('extract').getDelayedCount();
  await until('all are added', async () => (await delayed()) === jobIds.length);
  // The worker has one place, and would wait in it for each of them.
  const accepted = await queue().submit(TENANT);
  await queue().reaches(accepted, 'completed');
  expect([ran, await delayed()]).toEqual([[accepted], jobIds.length]);
  // They waited for their confirmation.
  over.resolve();
  await Promise.all(answers);
  await until('each has run', () => ran.length === 1 + jobIds.length);
});

it('the script that confirms stores the answer, in an open record or one that Redis has lost', async () => {
  const { jobs, redis } = queue();
  const record = ownKey('idempotency', TENANT, 'key');
  const kept = { record, fingerprint: 'f', seed: 's', answer: '{"id":1}' };
  const job = { jobId: newJobId(), payload: payloadOf(TENANT) };
  const seen: unknown[] = [];
  await jobs.submit(TENANT, [job], {
    alongside: async () => void seen.push(await redis.exists(record)),
    answer: () => kept,
  });
  expect(seen).toEqual([0]);
  expect(await redis.hgetall(record)).toEqual({ fingerprint: 'f', seed: 's', answer: '{"id":1}' });
  expect(await redis.pttl(record)).toBeGreaterThan(23 * 60 * 60 * 1000);
});

it('whoever waits for a job that is not confirmed yet sees none', async () => {
  const { jobs } = queue();
  const jobId = newJobId();
  const seen: unknown[] = [];
  await jobs.submit(TENANT, [{ jobId, payload: payloadOf(TENANT) }], {
    alongside: async () => void seen.push(await jobs.read(jobId)),
  });
  expect(seen).toEqual([undefined]);
  expect(await jobs.read(jobId)).toMatchObject({ status: 'queued' });
});

it('a job that was refused and is accepted under its id stands in the list of its key', async () => {
  const { jobs, redis } = queue();
  const again = { jobId: newJobId(), payload: payloadOf(TENANT) };
  await expect(jobs.submit(TENANT, [again], { ...refusing, repeated: true })).rejects.toThrow();
  await jobs.submit(TENANT, [again], { repeated: true });
  expect(await redis.zrange(tenantJobsKey(TENANT), '0', '-1')).toEqual([again.jobId]);
  expect(await redis.smembers(ownKey('unfinished', TENANT))).toEqual([again.jobId]);
});
