/**
 * The workers' side of the job queue. It handles what BullMQ and Redis require (lock, cancellation,
 * shutdown, failures), so the extraction's steps see one job, one signal and one report.
 */

import { randomBytes } from 'node:crypto';
import { DelayedError, type Job, type Queue, UnrecoverableError, WaitingError } from 'bullmq';
import { type ErrorBody, ServiceError } from 'soundpost-contract/errors';
import { type Probe, probeTable } from 'soundpost-kit/observe/probes';
import { redisNow } from 'soundpost-kit/redis/clock';
import { subscribe } from 'soundpost-kit/redis/subscription';
import { StorageUnavailable } from 'soundpost-kit/storage/storage';
import { AttemptReport, observeEnds, observeStart } from './attempt-report.ts';
import { noteServed, returnUnstarted, startAttempt, wakeWorker } from './bullmq-internals.ts';
import { cancelledError, deadlyError } from './job-record.ts';
import { ACCEPTED_CHANNEL, CANCEL_CHANNEL } from './names.ts';
import { waitingJobs } from './open-queue.ts';
import { awayNow, closeWorker, openWorker, type WorkerSettings } from './open-worker.ts';
import { ExtractPayload, type ExtractProgress, type ExtractResult, readPayload } from './payloads.ts';
import { forgetReserved } from './reservation.ts';
import { Semaphore } from './semaphore.ts';
import { Shares } from './shares.ts';

/**
 * Why a running job was aborted. `unconfirmed`: never accepted. `deadly`: killed too many workers.
 * `undecided`: may have. `paused`: its key is.
 */
class JobAborted extends Error {
  override readonly name = 'JobAborted';
  readonly why: 'cancelled' | 'lost' | 'shutdown' | 'deadly' | 'undecided' | 'unconfirmed' | 'paused';
  constructor(why: JobAborted['why']) {
    super(`the job was aborted: ${why}`);
    this.why = why;
  }
}

/** An attempt at a job, as its steps see it. */
export interface ExtractionJob {
  readonly jobId: string;
  readonly payload: ExtractPayload;
  /** Unique: names this attempt's files. */
  readonly attemptToken: string;
  /** Position in the queue; the smallest is served first (docs/decisions/0004-fairness.md). */
  readonly order: number;
  /** Aborted with a {@link JobAborted} when the job is cancelled, lost or handed back. */
  readonly signal: AbortSignal;
  /** Written at the next tick, or at once for a new step; call it as often as needed. */
  report(state: ExtractProgress): void;
  /** Call with the processor time that tools have used, for the key's usage. */
  spent?(seconds: number): void;
  /** Call when the job gets an encoder: virtual time advances. */
  takeTurn(): Promise<void>;
}

export interface ExtractionConsumerOptions extends WorkerSettings {
  /** Jobs taken at the same time; keys without one may take up to as many again. */
  readonly concurrency: number;
  /**
   * Resolves with the result. A ServiceError is final, except INTERNAL_ERROR, which is retried and
   * in the end shown as thrown. Any other error is retried and shown as INTERNAL_ERROR.
   */
  readonly run: (job: ExtractionJob) => Promise<ExtractResult>;
  /** For reading the waiting jobs, on a connection of the role `request`. */
  readonly queue: Queue;
  /** Seconds without a started job, despite waiting jobs and room, that count as stalled. */
  readonly patienceSeconds?: number | undefined;
}

interface ExtractionConsumer {
  /** Stops taking jobs, lets running ones finish for `graceMs`, then aborts and returns them. */
  close(graceMs: number): Promise<void>;
}

/** A job fails after losing this many starts to the death of its worker's process. */
const MAX_LOST_STARTS = 3;
/** How long a job waits while it is unknown whether its last worker died, ms. */
const LOOK_AGAIN_MS = 2000;
/** How long a paused key's job waits until the key is checked again. */
const PAUSED_MS = 10_000;
/** A job with this many lost starts runs alone, so that its crash cannot be blamed on others. */
const ALONE_AFTER_LOST_STARTS = 2;
/** BullMQ also counts jobs that never started here; only our own limit, above, ends jobs. */
const MAX_STALLED = 1000;

export function consumeExtractions(options: ExtractionConsumerOptions): ExtractionConsumer {
  const { redis, logger, queue, probes, patienceSeconds, concurrency } = options;
  const running = new Map<string, RunningJob>();
  const room = new Semaphore(2 * concurrency);
  let begun = 0;

  // BullMQ passes a signal only to three parameters; it aborts when the lock is not renewed.
  const processor = async (job: Job, token = '', lockLost?: AbortSignal): Promise<ExtractResult> => {
    const jobId = job.id ?? '';
    // After a Redis outage a worker can get its own job again before noticing that it lost it.
    running.get(jobId)?.controller.abort(new JobAborted('lost'));
    running.delete(jobId);
    const payload = readPayload(ExtractPayload, job.data);
    const { tenant } = payload;
    if (!shares.admits(tenant)) {
      await returnUnstarted(redis, 'extract', job, token);
      throw new WaitingError();
    }
    const controller = new AbortController();
    const onLost = (): void => controller.abort(new JobAborted('lost'));
    lockLost?.addEventListener('abort', onLost, { once: true });
    const own: RunningJob = { controller, tenant };
    running.set(jobId, own);
    if (running.size > concurrency) void shares.look();
    begun += 1;
    observeStart(job, options.observer);
    try {
      return await attempt({ job, token, payload }, own, room, options);
    } catch (error) {
      throw await asBullError(error, job, token, controller.signal, options);
    } finally {
      if (running.get(jobId) === own) running.delete(jobId);
      shares.left();
      lockLost?.removeEventListener('abort', onLost);
    }
  };

  const worker = openWorker('extract', processor, options, {
    concurrency,
    maxStalledCount: MAX_STALLED,
  });
  observeEnds(worker, options.observer);

  const hasRoom = (): boolean => running.size < concurrency && !worker.isPaused();
  const held = () => [...running.values()].map(({ tenant }) => tenant);
  const shares = new Shares({ redis, worker, places: concurrency, held, logger });
  if (patienceSeconds !== undefined) {
    probes?.add(
      'consumer',
      consumerProbe(queue, patienceSeconds, () => ({ begun, hasRoom: hasRoom() })),
    );
    void probes?.ask('consumer');
  }

  const unsubscribe = followMessages(options, running, shares);

  return {
    async close(graceMs) {
      shares.close();
      await probes?.close('consumer');
      await closeWorker(worker, graceMs, () => {
        for (const { controller } of running.values()) {
          controller.abort(new JobAborted('shutdown'));
        }
      });
      unsubscribe();
    },
  };
}

/**
 * A lost message does no harm: the attempt's report reads the cancel flag with its next tick,
 * and the shares look at the queue every second.
 * @returns how to unsubscribe
 */
function followMessages(
  { redis, logger }: ExtractionConsumerOptions,
  running: ReadonlyMap<string, RunningJob>,
  shares: Shares,
): () => void {
  return subscribe(
    redis,
    {
      [CANCEL_CHANNEL]: (jobId) => running.get(jobId)?.controller.abort(new JobAborted('cancelled')),
      [ACCEPTED_CHANNEL]: (message) => {
        if (![...running.values()].some(({ tenant }) => message === tenant)) void shares.look();
      },
    },
    (error) => logger.warn({ error: error.message }, 'messages to workers'),
  );
}

/**
 * Detects a worker that seems healthy but takes no jobs: its blocking connection is dead without an
 * error, or its loop has stopped. The queue itself is the canary.
 * @param queue on a connection of the role `request`, not the worker's blocking one
 * @param look how many jobs the worker has started, and whether it would start one now
 */
function consumerProbe(
  queue: Queue,
  patienceSeconds: number,
  look: () => { readonly begun: number; readonly hasRoom: boolean },
): Probe<'consumer'> {
  let begunBefore = -1;
  return {
    everyMs: (patienceSeconds * 1000) / probeTable.consumer.failureThreshold,
    async ask() {
      const waiting = await waitingJobs(queue);
      const { begun, hasRoom } = look();
      const isStalled = waiting > 0 && hasRoom && begun === begunBefore;
      begunBefore = begun;
      return isStalled ? 'stalled' : 'taking';
    },
  };
}

/** A job that this worker is running. */
interface RunningJob {
  readonly controller: AbortController;
  readonly tenant: string;
}

async function attempt(
  { job, token, payload }: { readonly job: Job; readonly token: string; readonly payload: ExtractPayload },
  own: RunningJob,
  room: Semaphore,
  { redis, run, registry, logger, lockSeconds }: ExtractionConsumerOptions,
): Promise<ExtractResult> {
  const { controller } = own;
  const { signal } = controller;
  const jobId = job.id ?? '';
  const onState = (state: Awaited<ReturnType<typeof startAttempt>>['state']): void => {
    if (state !== 'held') {
      controller.abort(new JobAborted(state));
    }
  };
  const holder = { jobId, token, tenant: payload.tenant };
  const { state, lostStarts, unsureStarts } = await startAttempt(redis, holder);
  onState(state);
  if (lostStarts + unsureStarts >= MAX_LOST_STARTS) {
    controller.abort(new JobAborted(lostStarts >= MAX_LOST_STARTS ? 'deadly' : 'undecided'));
  }
  signal.throwIfAborted();

  const report = new AttemptReport({
    redis,
    jobId,
    token,
    lockMs: lockSeconds * 1000,
    workerId: registry?.id ?? '',
    onState,
    logger,
  });
  let leave: (() => void) | undefined;
  try {
    leave = await room.acquire({
      weight: lostStarts + unsureStarts >= ALONE_AFTER_LOST_STARTS ? room.capacity : 1,
      signal,
    });
    await report.beginWork();
    signal.throwIfAborted();
    const attemptToken = randomBytes(8).toString('hex');
    const result = await run({
      jobId,
      payload,
      attemptToken,
      order: job.priority,
      signal,
      report: (state) => report.note(state),
      spent: (seconds) => report.spent(seconds),
      takeTurn: () => noteServed(redis, jobId, attemptToken),
    });
    signal.throwIfAborted();
    return result;
  } finally {
    await report.end();
    leave?.();
  }
}

/** Converts the end of an attempt into BullMQ's terms. */
async function asBullError(
  error: unknown,
  job: Job,
  token: string,
  signal: AbortSignal,
  { redis, probes, logger }: ExtractionConsumerOptions,
): Promise<Error> {
  const reason = signal.aborted ? signal.reason : error;
  if (reason instanceof JobAborted) {
    return givenUp(reason, job, token, { redis, logger });
  }
  const isOurs = !(error instanceof ServiceError) || error.code === 'INTERNAL_ERROR';
  if (isOurs && (await awayNow(error, probes)) !== undefined) return error as Error;
  if (isOurs && probes?.isFailing('storage')) {
    return new StorageUnavailable('ETIMEDOUT', 'the storage was away for too long', error);
  }
  // A job that fails before it gets an encoder, such as for its source, counts as served.
  await noteServed(redis, job.id ?? '').catch(() => undefined);
  if (error instanceof ServiceError && error.code !== 'INTERNAL_ERROR') {
    logger.info({ jobId: job.id, code: error.code, details: error.details, err: error.cause }, 'job failed');
    return new UnrecoverableError(JSON.stringify(error.toBody()));
  }
  logger.error({ jobId: job.id, err: error }, 'attempt failed');
  const body: ErrorBody =
    error instanceof ServiceError
      ? error.toBody()
      : { code: 'INTERNAL_ERROR', message: 'the job could not be finished' };
  return new Error(JSON.stringify(body), { cause: error });
}

async function givenUp(
  reason: JobAborted,
  job: Job,
  token: string,
  { redis, logger }: Pick<ExtractionConsumerOptions, 'redis' | 'logger'>,
): Promise<Error> {
  const jobId = job.id ?? '';
  switch (reason.why) {
    case 'cancelled':
      return new UnrecoverableError(JSON.stringify(cancelledError));
    case 'unconfirmed':
      logger.info({ jobId }, 'a job that was never accepted is removed');
      await forgetReserved(redis, job.data.tenant, jobId);
      job.opts.removeOnFail = true;
      return new UnrecoverableError(JSON.stringify(cancelledError));
    case 'shutdown':
      await job.moveToWait(token);
      await wakeWorker(redis);
      return new WaitingError();
    case 'undecided':
      await job.moveToDelayed(redisNow() + LOOK_AGAIN_MS, token);
      return new DelayedError();
    case 'paused':
      await job.moveToDelayed(redisNow() + PAUSED_MS, token);
      return new DelayedError();
    case 'deadly':
      logger.error({ jobId }, 'the job is not begun again: each worker that began it was lost');
      return new UnrecoverableError(JSON.stringify(deadlyError));
    case 'lost':
      logger.warn({ jobId }, 'the job was given to another worker');
      return reason;
  }
}
