/** BullMQ's workers: begun with what all of them need, and ended in bounded time. */
import {
  type BackoffStrategy,
  DelayedError,
  type Job,
  type Processor,
  type Telemetry,
  WaitingError,
  Worker,
  type WorkerOptions,
} from 'bullmq';
import { deadline, untilAborted } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { Probes } from 'soundpost-kit/observe/probes';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { wakeWorker } from './bullmq-internals.ts';
import { type QueueName, queueNames } from './names.ts';
import { connectionOptions } from './open-queue.ts';
import type { WorkerRegistry } from './worker-registry.ts';

export interface WorkerSettings {
  /** A connection of the role `worker`. The caller closes it. */
  readonly redis: Redis;
  /** How long a worker may be silent before its job is given to another. */
  readonly lockSeconds: number;
  /** Where it is noted what this process has begun, so that another one takes it up when this one has died. */
  readonly registry?: WorkerRegistry | undefined;
  /** During whose failures it takes no jobs. */
  readonly probes?: Probes | undefined;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/**
 * How often a worker looks for jobs whose worker is no more. BullMQ gives a job away in the second look that finds it in nobody's hands, and only one
 * look in an interval counts, whoever makes it: a lost job is taken up within its lock and two of these.
 */
const LOOKS_PER_LOCK = 6;

/** From an ended connection to the next look for jobs, ms. BullMQ would wait 15 s, while the connection is long made anew. */
const LOOK_AGAIN_MS = 500;

/** What is told to others must survive many deaths of whoever tells it. */
const MAX_STALLED = 100;

export function openWorker(
  name: QueueName,
  processor: Processor,
  { redis, lockSeconds, registry, probes, logger, telemetry }: WorkerSettings,
  options: Pick<WorkerOptions, 'concurrency' | 'autorun' | 'maxStalledCount' | 'settings'>,
): Worker {
  const lockMs = lockSeconds * 1000;
  const backoff = options.settings?.backoffStrategy;
  const inTime = backoff ? neverEarly(processor) : processor;
  const whileOpen: Processor = (job, token, signal) => {
    if (probes?.pauses(name)) return putBack(name, job, token, redis);
    return inTime(job, token, signal);
  };
  const worker: Worker = new Worker(queueNames[name], whileOpen, {
    ...connectionOptions(redis, telemetry),
    maxStalledCount: MAX_STALLED,
    ...options,
    ...(backoff && { settings: { backoffStrategy: noted(backoff) } }),
    autorun: false,
    lockDuration: lockMs,
    // Redis takes whole milliseconds only.
    stalledInterval: Math.ceil(lockMs / LOOKS_PER_LOCK),
    runRetryDelay: LOOK_AGAIN_MS,
  }).on('error', (error) => logger.warn({ error: error.message }, `${name} queue`));
  if (probes !== undefined) pauseBy(probes, worker, name);
  // Before it has a job to lose.
  const known = registry?.add(name, worker.id) ?? Promise.resolve();
  if (options.autorun !== false) {
    known.then(() => worker.run()).catch((error: Error) => worker.emit('error', error));
  }
  return worker;
}

/** BullMQ hands one job more to a worker that was waiting when it was paused. No try is spent. */
async function putBack(name: QueueName, job: Job, token: string | undefined, redis: Redis): Promise<never> {
  await job.moveToWait(token);
  if (name === 'extract') await wakeWorker(redis);
  throw new WaitingError();
}

/** Takes no more jobs while the probes say so; those that run go on. */
function pauseBy(probes: Probes, worker: Worker, name: QueueName): void {
  const follow = (): void => {
    const pauses = probes.pauses(name);
    if (pauses !== worker.isPaused()) void (pauses ? worker.pause(true) : worker.resume());
  };
  probes.on('changed', follow);
  worker.once('closing', () => probes.off('changed', follow));
  follow();
}

/** Clocks of workers differ by a little. */
const EARLY_MS = 1000;

/**
 * A worker whose clock is ahead hands out what waits for its next try too early, also to others, before it has noticed: that is put back. BullMQ forgets the
 * time for which a job waits when it hands it out, so it stands in the job's data as well.
 */
function neverEarly(processor: Processor): Processor {
  return async (job: Job, token?: string) => {
    const notBeforeMs = Number(job.data.notBeforeMs ?? 0);
    if (notBeforeMs - redisNow() > EARLY_MS) {
      await job.moveToDelayed(notBeforeMs, token);
      throw new DelayedError();
    }
    return processor(job, token);
  };
}

function noted(backoff: BackoffStrategy): BackoffStrategy {
  return async (tries, type, error, job) => {
    const delayMs = await backoff(tries, type, error, job);
    // The try has ended whether that can be noted or not.
    if (delayMs > 0) {
      await job?.updateData({ ...job.data, notBeforeMs: redisNow() + delayMs }).catch(() => undefined);
    }
    return delayMs;
  };
}

/** Beyond the grace, for what an abort needs to take effect; a Redis that is away would otherwise hold us for ever. */
const FORCE_AFTER_MS = 3000;

/**
 * Takes no more jobs and waits for those that run. After `graceMs` `giveUp` is called once, and a little later the
 * connection is cut: what runs then is found by others when its lock has expired.
 */
export async function closeWorker(worker: Worker, graceMs: number, giveUp: () => void): Promise<void> {
  const giving = setTimeout(giveUp, graceMs);
  const forcing = setTimeout(() => {
    worker.close(true).catch(() => undefined);
  }, graceMs + FORCE_AFTER_MS);
  using limit = deadline(graceMs + 2 * FORCE_AFTER_MS);
  try {
    await untilAborted(worker.close(), limit.signal);
  } catch (error) {
    if (!limit.signal.aborted) throw error;
  } finally {
    clearTimeout(giving);
    clearTimeout(forcing);
  }
}
