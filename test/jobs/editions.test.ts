/** Workers of this edition beside jobs that they cannot read: left to others, or failed after an hour. */
import { Worker } from 'bullmq';
import { redisClock } from 'soundpost-kit/redis/clock';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { UnreadableRecord } from 'soundpost-kit/redis/record';
import { until } from 'soundpost-testing/until';
import { afterEach, describe, expect, it } from 'vitest';
import { consumeCompletions } from '../../src/followups/completion.ts';
import { JobFollowUps } from '../../src/followups/job-followups.ts';
import { readDestinations } from '../../src/followups/state/destinations.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { completionId, destinationId, queueNames } from '../../src/jobs/names.ts';
import { WebhookPayload } from '../../src/jobs/payloads.ts';
import { jobKey, queueKey } from './bullmq-keys.ts';
import { resultOf } from './job-result.ts';
import { destinedPayload, logger, newJobId, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();
const HOUR_MS = 60 * 60 * 1000;

afterEach(() => redisClock.forget());

/** A job that waits, as another edition would write it. */
async function submitAs(change: (data: string) => string): Promise<string> {
  const jobId = await queue().submit();
  const hash = jobKey('extract', jobId);
  await queue().redis.hset(hash, 'data', change((await queue().redis.hget(hash, 'data')) ?? ''));
  return jobId;
}

const left = (name: 'extract' | 'completion' | 'webhook', id: string) =>
  until(
    `${id} is left to others`,
    async () => (await queue().redis.hexists(jobKey(name, id), 'spLeftAt')) === 1,
  );

const anHourPasses = (): void => redisClock.set(Date.now() + HOUR_MS);

const others: Readonly<Record<string, (data: string) => string>> = {
  'of the next edition': (data) => data.replace('"version":1', '"version":2'),
  'with a field that it does not know': (data) => data.replace('{', '{"speed":2,'),
  'that is no JSON': (data) => data.slice(0, 20),
};

describe('a job', () => {
  it.each(Object.keys(others))('%s is left, and fails with a sentence after an hour', async (name) => {
    const begun: string[] = [];
    const jobId = await submitAs(others[name] ?? String);
    queue().consume(async (job) => {
      begun.push(job.jobId);
      return resultOf(job.jobId);
    });
    await left('extract', jobId);
    const other = await queue().submit();
    await queue().reaches(other, 'completed');
    expect(await queue().redis.hget(jobKey('extract', jobId), 'finishedOn')).toBeNull();
    anHourPasses();
    const failed = await until('the job has failed', async () => {
      const { finishedOn, failedReason = '' } = await queue().redis.hgetall(jobKey('extract', jobId));
      return finishedOn !== undefined && failedReason;
    });
    expect(JSON.parse(failed)).toEqual({
      code: 'INTERNAL_ERROR',
      message: expect.stringContaining('no worker could read this job for an hour: '),
    });
    expect(begun).toEqual([other]);
    // No try was spent on it before.
    expect(await queue().redis.hget(jobKey('extract', jobId), 'atm')).toBe('1');
  });

  it('of the next edition is taken by a worker of that edition', async () => {
    const jobId = await submitAs(others['of the next edition'] ?? String);
    queue().consume(async (job) => resultOf(job.jobId));
    await left('extract', jobId);
    const taken: unknown[] = [];
    const newer = new Worker(
      queueNames.extract,
      async ({ id, data }) => {
        taken.push([id, data.version]);
        return { version: 2 };
      },
      { connection: queue().connect('worker'), prefix: KEY_PREFIX },
    );
    queue().onClose(() => newer.close());
    await until('the newer worker has had it', () => taken.length > 0);
    expect(taken).toEqual([[jobId, 2]]);
    await until('it has ended', async () => (await queue().jobs.read(jobId))?.finishedAtMs != null);
    const record = await queue().jobs.read(jobId);
    expect(record?.unreadable).toBeInstanceOf(UnreadableRecord);
    expect(record?.error?.message).toContain('record version 2');
  });
});

describe('what follows a job', () => {
  it('waits while only its record cannot be read, so that no follow-up is lost', async () => {
    const redis = queue().connect('worker');
    const followUps = new JobFollowUps({ redis, webhookTries: 1, recordSeconds: 3600, logger });
    queue().onClose(() => followUps.close());
    const jobId = await queue().submit(TENANT, { webhook: 'https://client.example/hook' });
    queue().consume(async () => ({ ...resultOf(jobId), version: 2 }) as never);
    const completions = consumeCompletions({ redis, lockSeconds: 30, logger, followUps });
    queue().onClose(() => completions.close(0));
    await left('completion', completionId(jobId));
    expect(await queue().queue('webhook').count()).toBe(0);
    // A worker that can read it comes.
    await queue().redis.hset(jobKey('extract', jobId), 'returnvalue', JSON.stringify(resultOf(jobId)));
    expect(Object.keys(await queue().toldWebhook(1))).toEqual(['job.completed']);
  });

  it('is left to others and fails in the same way', async () => {
    const redis = queue().connect('worker');
    const followUps = new JobFollowUps({ redis, webhookTries: 1, recordSeconds: 3600, logger });
    queue().onClose(() => followUps.close());
    const { webhook } = followUps.queues;
    await webhook.add('some-webhook', 'job.completed', { version: 2, more: 'than is known' }, 1);
    const worker = await FollowUpWorker.start({
      ...{ redis, lockSeconds: 30, logger, queue: webhook, isAlone: false, concurrency: 1 },
      kindOf: () => ({
        payload: WebhookPayload,
        prepare: async () => ({ ready: undefined }),
        try: async () => ({ outcome: 'done' as const, result: {} }),
        schedule: () => undefined,
      }),
    });
    queue().onClose(() => worker.close(0));
    await left('webhook', 'some-webhook');
    anHourPasses();
    const ended = await until('it has failed', async () => {
      const stored = await webhook.find('some-webhook');
      return stored?.status === 'failed' && stored;
    });
    expect(ended.lastError).toContain('no worker could read this job for an hour: it has record version 2');
  });

  it('has failed where the worker that ended the job knew nothing of it', async () => {
    const jobId = newJobId();
    await queue().take(TENANT, { jobId, payload: destinedPayload(jobId) });
    queue().consume(async () => resultOf(jobId));
    const record = await queue().reaches(jobId, 'completed');
    const stateOf = async () => (await readDestinations(queue().redis, record, [])).job;
    expect(await stateOf()).toMatchObject({ status: 'pending' });
    // As an older worker leaves it: what follows was added, without the put.
    await queue().redis.hset(jobKey('completion', completionId(jobId)), 'finishedOn', Date.now());
    expect(await queue().redis.exists(jobKey('destination', destinationId(jobId, 'audio')))).toBe(0);
    expect(await stateOf()).toMatchObject({
      status: 'failed',
      error: { code: 'DESTINATION_FAILED', message: expect.stringContaining('knew of no destinations') },
    });
    expect(await queue().redis.zcard(queueKey('completion', 'waiting-children'))).toBe(0);
  });
});
