/** A worker whose clock is ahead hands out what waits for its next try, before it has noticed; then it takes no jobs. */
import { Job, Queue } from 'bullmq';
import { Probes } from 'soundpost-kit/observe/probes';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { closeWorker, openWorker } from '../../src/jobs/open-worker.ts';
import { logger, useQueue } from './queue-fixture.ts';

const queue = useQueue();
const DELAY_MS = 60_000;

// Without `neverEarly` in src/jobs/open-worker.ts it is tried a second time at once.
it('what is handed out before its time is put back, and no try is spent', async () => {
  const voices = new Queue('voice', { connection: queue().redis, prefix: KEY_PREFIX });
  queue().onClose(() => voices.close());
  const tries: number[] = [];
  const worker = openWorker(
    'voice',
    async (job) => {
      tries.push(job.attemptsMade);
      throw new Error('the gateway is away');
    },
    { redis: queue().connect('worker'), lockSeconds: 30, logger },
    { concurrency: 1, settings: { backoffStrategy: () => DELAY_MS } },
  );
  queue().onClose(() => closeWorker(worker, 0, () => undefined));
  const { id = '' } = await voices.add(
    'send',
    { what: 'kept' },
    { attempts: 3, backoff: { type: 'schedule' } },
  );
  const job = await until('it waits for its next try', async () => {
    const found = await Job.fromId(voices, id);
    return found?.attemptsMade === 1 && (await found.isDelayed()) && found;
  });
  const due = Number(job.data.notBeforeMs);
  expect(due - Date.now()).toBeGreaterThan(DELAY_MS / 2);

  const taken = new Promise((resolve) => worker.once('active', resolve));
  await job.promote();
  await taken;
  const back = await until('it waits again', async () => {
    const found = await Job.fromId(voices, id);
    return found !== undefined && (await found.isDelayed()) && found;
  });
  expect(tries).toEqual([0]);
  expect(back.attemptsMade).toBe(1);
  expect(back.data.what).toBe('kept');
  expect(Math.abs(Date.now() + back.delay - due)).toBeLessThan(DELAY_MS / 4);
});

it('a worker whose clock goes wrong takes no job until it is right again', async () => {
  const voices = new Queue('voice', { connection: queue().redis, prefix: KEY_PREFIX });
  queue().onClose(() => voices.close());
  const probes = new Probes(logger);
  let clock: 'right' | 'wrong' = 'right';
  probes.add('clock', { ask: () => clock });
  queue().onClose(() => probes.close('clock'));
  const worker = openWorker(
    'voice',
    async () => 'sent',
    { redis: queue().connect('worker'), lockSeconds: 30, probes, logger },
    { concurrency: 1 },
  );
  queue().onClose(() => closeWorker(worker, 0, () => undefined));
  await until('it waits for a job', async () =>
    /blocked_clients:[1-9]/.test(await queue().redis.info('clients')),
  );
  clock = 'wrong';
  await probes.ask('clock');
  expect(worker.isPaused()).toBe(true);
  const ended = new Promise((resolve) => worker.once('completed', resolve));
  // BullMQ hands it to one that waits all the same.
  const taken = new Promise((resolve) => worker.once('active', resolve));
  const { id = '' } = await voices.add('send', { what: 'kept' });
  await taken;
  await until('it is back', async () => (await voices.getJobState(id)) === 'waiting');
  expect((await Job.fromId(voices, id))?.attemptsMade).toBe(0);
  clock = 'right';
  await probes.ask('clock');
  expect(worker.isPaused()).toBe(false);
  await ended;
});
