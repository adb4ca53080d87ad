/** An attempt that meets a Redis that refuses costs no try, and the worker waits until it is over (decisions A7). */
import { silentObserver } from 'soundpost-kit/observe/metrics/observer';
import { Probes } from 'soundpost-kit/observe/probes';
import { redisProbe } from 'soundpost-kit/redis/connection';
import { until } from 'soundpost-testing/until';
import { beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { scheduled } from '../../src/followups/kind.ts';
import { FollowUpQueue } from '../../src/followups/queue.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { resultOf } from './job-result.ts';
import { logger, useQueue } from './queue-fixture.ts';

const queue = useQueue();

const set = (name: string, value: string) => queue().redis.call('CONFIG', 'SET', name, value);
/** How Redis is made to refuse, and what ends that. */
const refusals = {
  redis_full: [() => set('maxmemory', '1'), () => set('maxmemory', '0')],
  redis_few_replicas: [() => set('min-replicas-to-write', '1'), () => set('min-replicas-to-write', '0')],
} as const;
type Refusal = keyof typeof refusals;

let told: string[];
beforeEach(async () => {
  told = [];
  for (const [, end] of Object.values(refusals)) await end();
});

/** A worker's, which knows that Redis refuses; the refusal is over once it has paused. */
function settings(refusal: Refusal) {
  const probes = new Probes(logger);
  probes.add('redis', redisProbe(queue().redis));
  probes.on('changed', () => {
    if (probes.isFailing('redis')) void refusals[refusal][1]();
  });
  queue().onClose(() => probes.close('redis'));
  void probes.ask('redis');
  return { probes, observer: { ...silentObserver, partAway: (reason: string) => void told.push(reason) } };
}

it.each(['redis_full', 'redis_few_replicas'] as const)(
  'a job whose attempts meet %s more often than it has tries is completed at its first',
  async (refusal) => {
    const most = 4;
    let starts = 0;
    queue().consume(
      async (job) => {
        starts += 1;
        if (starts <= most) await refusals[refusal][0]();
        await job.takeTurn();
        return resultOf(job.jobId);
      },
      { ...settings(refusal), takesTurns: true },
    );
    const jobId = await queue().submit();
    await queue().reaches(jobId, 'completed', 'failed');
    const job = await queue().queue('extract').getJob(jobId);
    expect([starts, job?.attemptsMade, job?.failedReason]).toEqual([most + 1, 1, undefined]);
    expect(told).toEqual(Array(most).fill(refusal));
  },
);

it('a result is kept until Redis takes it', async () => {
  let starts = 0;
  const { probes, ...rest } = settings('redis_few_replicas');
  queue().consume(
    async (job) => {
      starts += 1;
      await job.takeTurn();
      await refusals.redis_few_replicas[0]();
      return resultOf(job.jobId);
    },
    { ...rest, probes, takesTurns: true },
  );
  const jobId = await queue().submit();
  expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({ status: 'completed' });
  expect(starts).toBe(1);
});

it('a follow-up whose attempt meets a full Redis keeps its tries', async () => {
  const redis = queue().connect('worker');
  const about = { name: 'webhook', keep: { delivered: { age: 60 }, failed: { age: 60 } }, logger } as const;
  const followUps = new FollowUpQueue({ ...about, redis });
  queue().onClose(() => followUps.close());
  const numbers: number[] = [];
  const worker = await FollowUpWorker.start({
    ...{ queue: followUps, redis, isAlone: false, concurrency: 1, lockSeconds: 30, logger },
    ...settings('redis_full'),
    kindOf: () => ({
      payload: z.object({}),
      prepare: async () => ({ ready: undefined }),
      async try(_ready, _payload, { number }) {
        numbers.push(number);
        if (numbers.length <= 3) await refusals.redis_full[0]();
        await redis.set('what it writes', '1');
        return { outcome: 'done', result: {} };
      },
      // Another try would come after an hour.
      schedule: scheduled([0, 3600]),
    }),
  });
  queue().onClose(() => worker.close(0));
  await followUps.add('one', 'event', {}, 2);
  await until('it is done', async () => (await followUps.find('one'))?.status === 'delivered');
  expect(numbers).toEqual([1, 1, 1, 1]);
});
