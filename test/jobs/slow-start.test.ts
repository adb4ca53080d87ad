/**
 * Queues that are made while Redis stalls for longer than a command's deadline: one that asks Redis for its version keeps the error of that moment for good.
 * Broken by hand (src/jobs/open-queue.ts): without skipVersionCheck every submission is refused from then on, with Redis well again.
 */
import { once } from 'node:events';
import { isRedisAway } from 'soundpost-kit/observe/away';
import type { Redis } from 'soundpost-kit/redis/connection';
import { until } from 'soundpost-testing/until';
import { afterEach, expect, it } from 'vitest';
import { JobFollowUps } from '../../src/followups/job-followups.ts';
import { JobQueue } from '../../src/jobs/job-queue.ts';
import { queueNames } from '../../src/jobs/names.ts';
import { closeQueues, openQueues } from '../../src/jobs/open-queue.ts';
import { logger, newJobId, payloadOf, TENANT, useQueue } from './queue-fixture.ts';

const LIMITS = { submitPerMinute: 1000, unfinishedPerTenant: 1000, queueLimit: 1000 };
const queue = useQueue();
afterEach(() => process.kill(queue().server.pid, 'SIGCONT'));

async function connected(): Promise<Redis> {
  // Two stalls that are waited for.
  const redis = queue().connect('request', undefined, 500);
  if (redis.status !== 'ready') await once(redis, 'ready');
  return redis;
}

it('take jobs as soon as it goes on', async () => {
  const redis = await connected();
  process.kill(queue().server.pid, 'SIGSTOP');
  const jobs = new JobQueue({
    redis,
    holdUpload: async () => true,
    limits: LIMITS,
    recordSeconds: 3600,
    logger,
  });
  queue().onClose(() => jobs.close());
  // The queue's own question came first, so it is too late when this one is.
  await expect(jobs.waiting()).rejects.toSatisfy(isRedisAway);
  process.kill(queue().server.pid, 'SIGCONT');

  const [alone, announced] = [newJobId(), newJobId()];
  const submitted = async (jobId: string, options: object): Promise<boolean> => {
    const job = { jobId, payload: payloadOf(TENANT, { ...options }) };
    const { outcome } = await jobs
      .submit(TENANT, [job], { repeated: true })
      .catch(() => ({ outcome: 'away' }));
    return outcome === 'reserved';
  };
  await until('a job is taken', () => submitted(alone, {}));
  await until('a flow is taken', () => submitted(announced, { webhook: 'https://client.example/hook' }));
  await until('both wait', async () => (await jobs.waiting().catch(() => 0)) === 2);
  expect(await jobs.cancel(alone)).toBe('claimed');
});

it('take voice messages as soon as it goes on', async () => {
  const redis = await connected();
  process.kill(queue().server.pid, 'SIGSTOP');
  const followUps = new JobFollowUps({ redis, webhookTries: 1, recordSeconds: 3600, logger });
  queue().onClose(() => followUps.close());
  const send = (): Promise<void> =>
    followUps.addVoice({
      ...{ tenant: TENANT, jobId: newJobId(), sendId: 'send-1', part: 0 },
      request: { instance: 'main', number: '12025550101' },
    });
  await expect(send()).rejects.toSatisfy(isRedisAway);
  process.kill(queue().server.pid, 'SIGCONT');

  await until('it is taken', () =>
    send().then(
      () => true,
      () => false,
    ),
  );
});

it('are shown on the board as soon as it goes on', async () => {
  const redis = await connected();
  process.kill(queue().server.pid, 'SIGSTOP');
  const queues = openQueues(redis, logger);
  queue().onClose(() => closeQueues(queues));
  // What the queues ask by themselves is asked between these two.
  await expect(redis.ping()).rejects.toSatisfy(isRedisAway);
  await expect(redis.ping()).rejects.toSatisfy(isRedisAway);
  process.kill(queue().server.pid, 'SIGCONT');

  const counts = await until('all are shown', () =>
    Promise.all(Object.values(queues).map((one) => one.getJobCounts())).catch(() => undefined),
  );
  expect(counts).toHaveLength(Object.keys(queueNames).length);
});
