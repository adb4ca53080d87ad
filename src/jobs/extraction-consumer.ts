/**
 * The workers' side of the job queue. It owns what BullMQ and Redis demand of whoever runs a job (lock, cancellation,
 * shutdown, how an error is written down), so that the steps of an extraction see one job, one signal and one report.
 */

import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { DelayedError, type Job, type Queue, UnrecoverableError, WaitingError } from 'bullmq';
import { type ErrorBody, ServiceError } from 'soundpost-contract/errors';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { type Probe, probeTable } from 'soundpost-kit/observe/probes';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { subscribe } from 'soundpost-kit/redis/subscription';
import { AttemptReport, observeEnds, observeStart } from './attempt-report.ts';
import { dropUnconfirmed, noteServed, startAttempt, wakeWorker } from './bullmq-internals.ts';
import { cancelledError, deadlyError } from './job-record.ts';
import { ACCEPTED_CHANNEL, CANCEL_CHANNEL } from './names.ts';
import { waitingJobs } from './open-queue.ts';
import { closeWorker, openWorker, type WorkerSettings } from './open-worker.ts';
import { ExtractPayload, type ExtractProgress, type ExtractResult } from './payloads.ts';
import { forgetReserved } from './reservation.ts';
import { Semaphore } from './semaphore.ts';
import { type Place, ShareWatch } from './share-watch.ts';

/**
 * Why the signal of a running job was aborted. `yielded`: its place was given to a job of another key. `refused`: it was never accepted. `deadly`: it has
 * killed too many workers. `undecided`: it may have. `paused`: its key is.
 */
class JobAborted extends Error {
  override readonly name = 'JobAborted';
  readonly why: 'cancelled' | 'lost' | 'shutdown' | 'yielded' | 'deadly' | 'undecided' | 'refused' | 'paused';
  constructor(why: JobAborted['why']) {
    super(`the job was given up: ${why}`);
    this.why = why;
  }
}

/** Whether a job was aborted to be taken up again: its place was given to another key. */
export function wasPutBack({ reason }: AbortSignal): boolean {
  return reason instanceof JobAborted && reason.why === 'yielded';
}

/** One attempt at a job, as its steps see it. */
export interface ExtractionJob {
  readonly jobId: string;
  readonly payload: ExtractPayload;
  /** Names this attempt's files; no other attempt at any job has the same. */
  readonly attemptToken: string;
  /** The job's place among all that wait: the smaller is served first (docs/decisions/0004-fairness.md). */
  readonly order: number;
  /** Aborted with a {@link JobAborted} when the job was cancelled, given to another worker, or is handed back. */
  readonly signal: AbortSignal;
  /** Notes the state, to be written with the next tick or, of a new step, at once; call it as often as there is news. */
  report(state: ExtractProgress): void;
  /** Notes that the job has its turn, an encoder: from now on it is not put back for another key, and the queue's virtual time moves on to it. */
  takeTurn(): Promise<void>;
}

export interface ExtractionConsumerOptions extends WorkerSettings {
  /** Jobs that are taken up at a time. */
  readonly concurrency: number;
  /**
   * Resolves with the result. Throws a ServiceError for a failure that is final, one with INTERNAL_ERROR for a failure that is to
   * be tried again and shown as it says when no try is left; anything else is tried again too, and shown as an INTERNAL_ERROR.
   */
  readonly run: (job: ExtractionJob) => Promise<ExtractResult>;
  /** What waits, asked on a connection of the role `request`. */
  readonly queue: Queue;
  /** Whether it is watched that jobs are taken at all: seconds without one, while jobs wait and there is room. */
  readonly patienceSeconds?: number | undefined;
  readonly observer?: Observer;
}

interface ExtractionConsumer {
  /** Stops taking jobs, lets running ones finish for `graceMs`, then aborts them and hands them back. */
  close(graceMs: number): Promise<void>;
}

/** Starts that a job may lose by the death of a worker's process: one that kills its worker each time ends failed after the third. */
const MAX_LOST_STARTS = 3;
/** How long a job waits of which it is not known yet whether it has lost so many, ms. */
const LOOK_AGAIN_MS = 2000;
/** How long a job of a paused key waits until it is looked whether the key still is. */
const PAUSED_MS = 10_000;
/**
 * After so many lost starts a job is begun when nothing else runs in its worker, so that jobs which were only beside the deadly one
 * are told from it before any of them has lost its third.
 */
const ALONE_AFTER_LOST_STARTS = 2;
/** BullMQ's own count takes a job that waited in a worker for one that was begun; ours, above, is the one that ends jobs. */
const MAX_STALLED = 1000;

export function consumeExtractions(options: ExtractionConsumerOptions): ExtractionConsumer {
  const { redis, logger, queue, probes, patienceSeconds, concurrency } = options;
  const running = new Map<string, RunningJob>();
  const room = new Semaphore(options.concurrency);
  let begun = 0;

  // Three parameters tell BullMQ to hand a signal in; it is aborted when the lock could not be renewed.
  const processor = async (job: Job, token = '', lockLost?: AbortSignal): Promise<ExtractResult> => {
    const jobId = job.id ?? '';
    const controller = new AbortController();
    const onLost = (): void => controller.abort(new JobAborted('lost'));
    lockLost?.addEventListener('abort', onLost, { once: true });
    // After an outage of Redis a worker may be given its own job again before it has noticed that it lost it.
    running.get(jobId)?.controller.abort(new JobAborted('lost'));
    const { tenant } = job.data;
    const own: RunningJob = {
      controller,
      tenant,
      order: job.priority,
      hasTurn: false,
    };
    running.set(jobId, own);
    begun += 1;
    observeStart(job, options.observer);
    if (worker.isPaused()) {
      // One that came with the answer to a question asked before the pause.
      controller.abort(new JobAborted('shutdown'));
    }
    try {
      return await attempt(job, token, own, room, options);
    } catch (error) {
      throw await asBullError(error, job, token, controller.signal, options);
    } finally {
      if (running.get(jobId) === own) {
        running.delete(jobId);
      }
      lockLost?.removeEventListener('abort', onLost);
    }
  };

  const worker = openWorker('extract', processor, options, {
    concurrency: options.concurrency,
    maxStalledCount: MAX_STALLED,
  });
  observeEnds(worker, options.observer);

  const hasRoom = (): boolean => running.size < concurrency && !worker.isPaused();
  const shares = new ShareWatch({
    redis,
    places: () =>
      hasRoom() || worker.isPaused()
        ? []
        : [...running.values()].filter(({ controller }) => !controller.signal.aborted),
    putBack: ({ controller }: RunningJob) => controller.abort(new JobAborted('yielded')),
    logger,
  });
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
 * and the share watch checks the queue every second.
 * @returns how to unsubscribe
 */
function followMessages(
  { redis, logger }: ExtractionConsumerOptions,
  running: ReadonlyMap<string, RunningJob>,
  shares: ShareWatch<RunningJob>,
): () => void {
  return subscribe(
    redis,
    {
      [CANCEL_CHANNEL]: (jobId) => running.get(jobId)?.controller.abort(new JobAborted('cancelled')),
      [ACCEPTED_CHANNEL]: (message) => {
        const [tenant = '', jobId = ''] = message.split(' ');
        shares.see({ tenant, jobId });
      },
    },
    (error) => logger.warn({ error: error.message }, 'messages to workers'),
  );
}

/**
 * Notices a worker that looks healthy and takes no jobs: its blocked connection is dead without an
 * error, or a loop inside has come to rest. The canary is the queue itself.
 * @param queue on a connection of the role `request`, not the one on which the worker waits
 * @param look jobs that the worker has begun, and whether it would begin one now
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
      const isInVain = waiting > 0 && hasRoom && begun === begunBefore;
      begunBefore = begun;
      return isInVain ? 'stalled' : 'taking';
    },
  };
}

/** A job that this worker has taken up. */
interface RunningJob extends Place {
  readonly controller: AbortController;
  hasTurn: boolean;
}

async function attempt(
  job: Job,
  token: string,
  own: RunningJob,
  room: Semaphore,
  { redis, run, registry, logger, lockSeconds }: ExtractionConsumerOptions,
): Promise<ExtractResult> {
  const { controller } = own;
  const { signal } = controller;
  const jobId = job.id ?? '';
  const payload = ExtractPayload.parse(job.data);
  const onState = (state: Awaited<ReturnType<typeof startConfirmed>>['state']): void => {
    if (state !== 'held') {
      controller.abort(new JobAborted(state));
    }
  };
  const holder = { jobId, token, tenant: payload.tenant };
  const { state, lostStarts, unsureStarts } = await startConfirmed(redis, holder, signal);
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
      takeTurn() {
        own.hasTurn = true;
        return noteServed(redis, jobId, attemptToken);
      },
    });
    signal.throwIfAborted();
    return result;
  } finally {
    await report.end();
    leave?.();
  }
}

/** An API confirms within milliseconds, or, when Redis was away, as soon as it is back; what none has confirmed by then never was accepted. */
const CONFIRMED_WITHIN_MS = 10_000;
const FIRST_LOOK_MS = 4;
const LAST_LOOK_MS = 100;

/** Waits until the job counts. */
async function startConfirmed(redis: Redis, holder: Parameters<typeof startAttempt>[1], signal: AbortSignal) {
  const untilMs = performance.now() + CONFIRMED_WITHIN_MS;
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 2, LAST_LOOK_MS)) {
    const { state, ...starts } = await startAttempt(redis, holder);
    if (state !== 'unconfirmed') return { state, ...starts };
    if (performance.now() > untilMs && (await dropUnconfirmed(redis, holder.jobId))) {
      return { state: 'refused' as const, ...starts };
    }
    await wait(waitMs, undefined, { signal });
  }
}

/** Translates the end of an attempt into what BullMQ understands. */
async function asBullError(
  error: unknown,
  job: Job,
  token: string,
  signal: AbortSignal,
  { redis, logger }: ExtractionConsumerOptions,
): Promise<Error> {
  const reason = signal.aborted ? signal.reason : error;
  if (reason instanceof JobAborted) {
    return givenUp(reason, job, token, { redis, logger });
  }
  // What ends before it had its turn, for want of its source, has had it all the same.
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
    case 'refused':
      logger.info({ jobId }, 'a job that was never accepted is removed');
      await forgetReserved(redis, job.data.tenant, jobId);
      job.opts.removeOnFail = true;
      return new UnrecoverableError(JSON.stringify(cancelledError));
    case 'shutdown':
    case 'yielded':
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
