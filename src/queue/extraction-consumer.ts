/**
 * The workers' side of the job queue. It owns what BullMQ and Redis demand of whoever runs a job (lock, cancellation,
 * shutdown, how an error is written down), so that the steps of an extraction see one job, one signal and one report.
 */
import { randomBytes } from 'node:crypto';
import { type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import { type ErrorBody, ServiceError } from '../contract/errors.ts';
import type { Logger } from '../logger.ts';
import { closeWorker } from './close-worker.ts';
import { cancelledError } from './job-record.ts';
import { type Hold, reportProgress, startJob } from './job-state.ts';
import { CANCEL_CHANNEL, queueKey, queueNames } from './names.ts';
import { ExtractPayload, type ExtractProgress, type ExtractResult } from './payloads.ts';
import { KEY_PREFIX, type Redis } from './redis.ts';

/** Why the signal of a running job was aborted. */
class JobAborted extends Error {
  override readonly name = 'JobAborted';
  readonly why: 'cancelled' | 'lost' | 'shutdown';
  constructor(why: JobAborted['why']) {
    super(`the job was given up: ${why}`);
    this.why = why;
  }
}

/** One attempt at a job, as its steps see it. */
export interface ExtractionJob {
  readonly jobId: string;
  readonly payload: ExtractPayload;
  /** Names this attempt's files; no other attempt at any job has the same. */
  readonly attemptToken: string;
  /** Aborted with a {@link JobAborted} when the job was cancelled, given to another worker, or is handed back. */
  readonly signal: AbortSignal;
  /** Notes the state, to be written with the next tick or, of a new step, at once; call it as often as there is news. */
  report(state: ExtractProgress): void;
}

export interface ExtractionConsumerOptions {
  /** A connection of the role `worker`. The caller closes it. */
  readonly redis: Redis;
  readonly concurrency: number;
  /** How long a worker may be silent before its job is given to another. */
  readonly lockSeconds: number;
  readonly logger: Logger;
  /** Resolves with the result, throws a ServiceError for a failure that is final, anything else to be tried again. */
  readonly run: (job: ExtractionJob) => Promise<ExtractResult>;
}

export interface ExtractionConsumer {
  /** Stops taking jobs, lets running ones finish for `graceMs`, then aborts them and hands them back. */
  close(graceMs: number): Promise<void>;
}

const TICK_MS = 500;
/** Starts that a job may cost: one that kills its worker each time ends failed after the third. */
const MAX_STALLED = 2;

export function consumeExtractions(options: ExtractionConsumerOptions): ExtractionConsumer {
  const { redis, logger } = options;
  const running = new Map<string, AbortController>();

  // Three parameters tell BullMQ to hand a signal in; it is aborted when the lock could not be renewed.
  const processor = async (job: Job, token = '', lockLost?: AbortSignal): Promise<ExtractResult> => {
    const jobId = job.id ?? '';
    const controller = new AbortController();
    const onLost = (): void => controller.abort(new JobAborted('lost'));
    lockLost?.addEventListener('abort', onLost, { once: true });
    running.set(jobId, controller);
    try {
      return await attempt(job, jobId, token, controller, options);
    } catch (error) {
      throw await asBullError(error, job, token, controller.signal, options);
    } finally {
      running.delete(jobId);
      lockLost?.removeEventListener('abort', onLost);
    }
  };

  const worker = new Worker(queueNames.extract, processor, {
    connection: redis,
    prefix: KEY_PREFIX,
    concurrency: options.concurrency,
    lockDuration: options.lockSeconds * 1000,
    stalledInterval: options.lockSeconds * 1000,
    maxStalledCount: MAX_STALLED,
  });
  worker.on('error', (error) => logger.warn({ error: error.message }, 'extraction queue'));

  const subscriber = redis.duplicate();
  subscriber.on('error', (error: Error) => logger.warn({ error: error.message }, 'cancel channel'));
  subscriber.on('message', (_channel, jobId: string) =>
    running.get(jobId)?.abort(new JobAborted('cancelled')),
  );
  subscriber.subscribe(CANCEL_CHANNEL).catch((error: Error) => {
    // The flag in the record still reaches us with the next tick.
    logger.warn({ error: error.message }, 'cancel channel');
  });

  return {
    async close(graceMs) {
      await closeWorker(worker, graceMs, () => {
        for (const controller of running.values()) {
          controller.abort(new JobAborted('shutdown'));
        }
      });
      subscriber.disconnect();
    },
  };
}

async function attempt(
  job: Job,
  jobId: string,
  token: string,
  controller: AbortController,
  { redis, run, logger }: ExtractionConsumerOptions,
): Promise<ExtractResult> {
  const payload = ExtractPayload.parse(job.data);
  const obey = (hold: Hold): void => {
    if (hold !== 'held') {
      controller.abort(new JobAborted(hold));
    }
  };
  const attemptToken = randomBytes(8).toString('hex');
  obey(await startJob(redis, jobId, token, attemptToken));
  controller.signal.throwIfAborted();

  let latest: ExtractProgress = { progress: 0, currentStep: 'downloading_video', inputFile: null };
  const write = (): Promise<void> => reportProgress(redis, jobId, token, latest).then(obey);
  let writing = write();
  // One write at a time, in order. Also without news, every so often: the answer carries the cancellation.
  const writeNext = (): void => {
    writing = writing.then(write).catch((error: Error) => {
      logger.warn({ jobId, error: error.message }, 'progress could not be written');
    });
  };
  const ticker = setInterval(writeNext, TICK_MS);
  try {
    const result = await run({
      jobId,
      payload,
      attemptToken,
      signal: controller.signal,
      report: (state) => {
        const isNewStep = state.currentStep !== latest.currentStep;
        latest = state;
        if (isNewStep) {
          writeNext();
        }
      },
    });
    controller.signal.throwIfAborted();
    return result;
  } finally {
    clearInterval(ticker);
    // The step in which a job ended must stand in its record, also when it failed between two ticks.
    await writing.then(write).catch(() => undefined);
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
    if (reason.why === 'cancelled') {
      return new UnrecoverableError(JSON.stringify(cancelledError));
    }
    if (reason.why === 'shutdown') {
      await job.moveToWait(token);
      // BullMQ wakes nobody for a job with a priority that comes back; idle workers would look after 5 s.
      await redis.zadd(queueKey('extract', 'marker'), 0, '0');
      return new WaitingError();
    }
    logger.warn({ jobId: job.id }, 'the job was given to another worker');
    return reason;
  }
  if (error instanceof ServiceError) {
    logger.info({ jobId: job.id, code: error.code, details: error.details, err: error.cause }, 'job failed');
    return new UnrecoverableError(JSON.stringify(error.toBody()));
  }
  logger.error({ jobId: job.id, err: error }, 'attempt failed');
  const body: ErrorBody = { code: 'INTERNAL_ERROR', message: 'the job could not be finished' };
  return new Error(JSON.stringify(body), { cause: error });
}
