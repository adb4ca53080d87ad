/** Opens BullMQ's workers with shared settings, and closes them within a time limit. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type BackoffStrategy,
  DelayedError,
  type Job,
  type Processor,
  type Telemetry,
  UnrecoverableError,
  WaitingError,
  Worker,
  type WorkerOptions,
} from 'bullmq';
import { deadline, untilAborted } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { ErrorBody } from 'soundpost-contract/errors';
import { type AwayReason, awayReason, isRedisAway } from 'soundpost-kit/observe/away';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Probes } from 'soundpost-kit/observe/probes';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { UnreadableRecord } from 'soundpost-kit/redis/record';
import { noteLeft, returnUnstarted } from './bullmq-internals.ts';
import { type QueueName, queueNames } from './names.ts';
import { connectionOptions } from './open-queue.ts';
import type { WorkerRegistry } from './worker-registry.ts';

export interface WorkerSettings {
  /** A connection of the role `worker`. The caller closes it. */
  readonly redis: Redis;
  /** How long a worker can be silent before its job goes to another. */
  readonly lockSeconds: number;
  /** Records this process's workers, so that another takes over their jobs if it dies. */
  readonly registry?: WorkerRegistry | undefined;
  /** While they fail, the worker takes no jobs. */
  readonly probes?: Probes | undefined;
  readonly observer?: Observer | undefined;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/**
 * How often workers check for lost jobs. BullMQ reassigns a job at the second check without a lock,
 * and counts one check per interval: a lost job waits for its lock and two checks.
 */
const LOOKS_PER_LOCK = 6;

/** Pause after a connection error, ms. BullMQ's 15 s would outlast the reconnection. */
const LOOK_AGAIN_MS = 500;

/** A follow-up must survive the deaths of many workers. */
const MAX_STALLED = 100;

/** An attempt's outcome, which its schedule is for: whatever it says, no part of ours was away. */
export class AttemptFailed extends Error {}

export function openWorker(
  name: QueueName,
  processor: Processor,
  settings: WorkerSettings,
  options: Pick<WorkerOptions, 'concurrency' | 'autorun' | 'maxStalledCount' | 'settings'>,
): Worker {
  const { redis, lockSeconds, registry, probes, logger, telemetry } = settings;
  const lockMs = lockSeconds * 1000;
  const backoff = options.settings?.backoffStrategy;
  const inTime = backoff ? neverEarly(processor) : processor;
  const isClosing = (): boolean => worker.closing !== undefined;
  const whileOpen: Processor = async (job, token, signal) => {
    try {
      if (probes?.pauses(name)) {
        // BullMQ gives a waiting worker one more job after a pause.
        await returnUnstarted(redis, name, job, token);
        throw new WaitingError();
      }
      endSurely(job, isClosing);
      return await inTime(job, token, signal);
    } catch (error) {
      if (error instanceof UnreadableRecord) {
        throw await leaveToOthers(error, job, token, { name, redis, logger });
      }
      const reason = await awayNow(error, probes);
      if (reason === undefined) throw error;
      settings.observer?.partAway(reason);
      logger.warn({ id: job.id, reason, err: error }, 'an attempt is put back: a part of ours is away');
      await putBack(job, token, isClosing);
      throw new WaitingError();
    }
  };
  const worker: Worker = new ReadingWorker(queueNames[name], whileOpen, {
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
  // Registered before it has a job to lose.
  const known = registry?.add(name, worker.id) ?? Promise.resolve();
  if (options.autorun !== false) {
    known.then(() => worker.run()).catch((error: Error) => worker.emit('error', error));
  }
  return worker;
}

// What Redis or the storage, being away, does to an attempt: it costs no try (decisions A7).

/** Between two attempts at what met them away. */
const AWAY_MS = 500;

/** Which part of ours, being away, made this attempt fail; the worker pauses at once. */
export async function awayNow(error: unknown, probes: Probes | undefined): Promise<AwayReason | undefined> {
  if (error instanceof AttemptFailed || error instanceof UnrecoverableError) return undefined;
  const reason = awayReason(error);
  if (reason === undefined) return undefined;
  if (reason !== 'storage') {
    await probes?.ask('redis');
    return reason;
  }
  return (await probes?.ask('storage')) === 'down' ? reason : undefined;
}

/** Repeats what Redis does not take until it does. @throws any other error, and while closing */
export async function throughAway<T>(work: () => Promise<T>, isClosing: () => boolean): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isRedisAway(error) || isClosing()) throw error;
      await sleep(AWAY_MS);
    }
  }
}

/** Uses up no attempt. A job whose lock has expired meanwhile is others'. */
async function putBack(job: Job, token: string | undefined, isClosing: () => boolean): Promise<void> {
  if (!isClosing()) await sleep(AWAY_MS);
  await throughAway(() => job.moveToWait(token), isClosing).catch(() => undefined);
}

/** Has BullMQ record an attempt's end once Redis takes it: refused, a result would cost a try. */
function endSurely(job: Job, isClosing: () => boolean): void {
  const [completed, failed] = [job.moveToCompleted.bind(job), job.moveToFailed.bind(job)];
  job.moveToCompleted = (...end) => throughAway(() => completed(...end), isClosing);
  job.moveToFailed = (...end) => throughAway(() => failed(...end), isClosing);
}

/** BullMQ lets no worker have a job whose data is no JSON: it would return with each lost lock. */
class ReadingWorker extends Worker {
  protected override createJob(...[stored, jobId]: Parameters<Worker['createJob']>): Job {
    return super.createJob({ ...stored, data: isJson(stored.data) ? stored.data : 'null' }, jobId);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * How long a job that this worker cannot read is left to workers of another edition (decisions A7).
 */
const LEFT_FOR_MS = 60 * 60 * 1000;
const LEFT_AT_FIRST_MS = 500;
const LEFT_AT_MOST_MS = 10_000;

/**
 * Puts a job back for a while that this worker cannot read, or whose job's record it cannot;
 * another one may. Uses up no attempt. After an hour nobody could, and it fails.
 */
async function leaveToOthers(
  { message, cause }: UnreadableRecord,
  job: Job,
  token: string | undefined,
  { name, redis, logger }: Pick<WorkerSettings, 'redis' | 'logger'> & { readonly name: QueueName },
): Promise<Error> {
  const now = redisNow();
  const leftForMs = now - (await noteLeft(redis, name, job.id ?? '', now));
  if (leftForMs < LEFT_FOR_MS) {
    logger.debug({ queue: name, id: job.id, why: message }, 'a job is left to other workers');
    const pauseMs = Math.min(Math.max(leftForMs, LEFT_AT_FIRST_MS), LEFT_AT_MOST_MS);
    await job.moveToDelayed(now + pauseMs, token);
    return new DelayedError();
  }
  logger.error(
    { queue: name, id: job.id, why: message, err: cause },
    'no worker could read a job for an hour',
  );
  const sentence = `no worker could read this job for an hour: ${message}`;
  const body: ErrorBody = { code: 'INTERNAL_ERROR', message: sentence };
  return new UnrecoverableError(name === 'extract' ? JSON.stringify(body) : sentence);
}

/** Pauses taking jobs as the probes demand; running jobs continue. */
function pauseBy(probes: Probes, worker: Worker, name: QueueName): void {
  const follow = (): void => {
    const pauses = probes.pauses(name);
    if (pauses !== worker.isPaused()) void (pauses ? worker.pause(true) : worker.resume());
  };
  probes.on('changed', follow);
  worker.once('closing', () => probes.off('changed', follow));
  follow();
}

/** Tolerance for differing clocks. */
const EARLY_MS = 1000;

/**
 * A worker whose clock is ahead delivers delayed retries too early, even to others: they are put
 * back. BullMQ forgets a job's delay on delivery, so the job's data holds it too.
 */
function neverEarly(processor: Processor): Processor {
  return async (job: Job, token?: string) => {
    const notBeforeMs = Number(job.data?.notBeforeMs ?? 0);
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
    // The attempt has ended, even if this cannot be recorded.
    if (delayMs > 0) {
      await job?.updateData({ ...job.data, notBeforeMs: redisNow() + delayMs }).catch(() => undefined);
    }
    return delayMs;
  };
}

/** After the grace period, time for an abort to work; without Redis we would wait forever. */
const FORCE_AFTER_MS = 3000;

/**
 * Stops taking jobs and waits for running ones. After `graceMs` it calls `giveUp` once, and soon
 * cuts the connection: jobs still running go to other workers when their locks expire.
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
