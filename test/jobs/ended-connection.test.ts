/** What a worker does when ioredis has given its connection up, as it may in a failover. */
import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { until } from 'soundpost-testing/until';
import { it } from 'vitest';
import { openWorker } from '../../src/jobs/open-worker.ts';
import { logger, useQueue } from './queue-fixture.ts';

const queue = useQueue();

/** Resolves before the connection is made anew. */
async function giveUp(redis: Redis): Promise<void> {
  const { retryStrategy } = redis.options;
  const ended = once(redis, 'end');
  Object.assign(redis.options, { retryStrategy: undefined });
  redis.stream.destroy();
  await ended;
  Object.assign(redis.options, { retryStrategy });
}

// Without LOOK_AGAIN_MS in src/jobs/open-worker.ts it takes 15 s.
it('takes the job within seconds that came meanwhile', async () => {
  const done: unknown[] = [];
  const redis = queue().connect('worker') as Redis;
  const settings = { redis, lockSeconds: 30, logger };
  const worker = openWorker('webhook', async ({ id }) => done.push(id), settings, { concurrency: 1 });
  queue().onClose(() => worker.close(true));
  const isWaiting = async (): Promise<boolean> =>
    / cmd=bzpopmin /.test(String(await queue().redis.client('LIST')));
  await until('it waits for a job', isWaiting);
  await giveUp(redis);
  await queue().queue('webhook').add('any', {}, { jobId: 'next' });
  await until('the job is done', () => done.includes('next'), 8_000);
});
