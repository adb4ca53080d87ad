/** Reports a running attempt: progress to the job's record, start and end to the observer. */
import type { Job, Worker } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Redis } from 'soundpost-kit/redis/connection';
import { type AttemptState, reportProgress } from './bullmq-internals.ts';
import { readFailure } from './job-record.ts';
import type { ExtractProgress } from './payloads.ts';

interface AttemptReportOptions {
  readonly redis: Redis;
  readonly jobId: string;
  /** Token of the job's lock. */
  readonly token: string;
  readonly lockMs: number;
  /** Of this process, while it works on the job. */
  readonly workerId: string;
  /** Called after each write: whether the job is still ours and wanted. */
  readonly onState: (state: AttemptState) => void;
  readonly logger: Logger;
}

/** The longest that a cancellation waits whose message was lost. */
const LONGEST_TICK_MS = 500;
/** Renews a lock well before it expires. */
const TICKS_IN_A_LOCK = 4;

export class AttemptReport {
  readonly #options: AttemptReportOptions;
  readonly #ticker: NodeJS.Timeout;
  #latest: ExtractProgress = { progress: 0, currentStep: 'downloading_video', inputFile: null };
  #isWorking = false;
  #spentSeconds = 0;
  #writing: Promise<void> = Promise.resolve();

  /** Starts writing at intervals, even without news, to renew the lock and see cancellations. */
  constructor(options: AttemptReportOptions) {
    this.#options = options;
    const tickMs = Math.min(LONGEST_TICK_MS, options.lockMs / TICKS_IN_A_LOCK);
    this.#ticker = setInterval(() => this.#writeNext(), tickMs);
  }

  /** Notes the state, to be written with the next tick or, of a new step, at once. */
  note(state: ExtractProgress): void {
    const isNewStep = state.currentStep !== this.#latest.currentStep;
    this.#latest = state;
    if (isNewStep) {
      this.#writeNext();
    }
  }

  /** Notes processor time, to be written with the next tick. */
  spent(seconds: number): void {
    this.#spentSeconds += seconds;
  }

  /** Resolves once the record says that this worker's death counts against the job. */
  async beginWork(): Promise<void> {
    this.#isWorking = true;
    this.#writing = this.#writing.then(() => this.#write());
    await this.#writing;
  }

  /** Writes once more: the record must show the step in which the job ended. */
  async end(): Promise<void> {
    clearInterval(this.#ticker);
    this.#isWorking = false;
    await this.#writing.then(() => this.#write()).catch(() => undefined);
  }

  // One write at a time, in order.
  #writeNext(): void {
    const { jobId, logger } = this.#options;
    this.#writing = this.#writing
      .then(() => this.#write())
      .catch((error: Error) => {
        logger.warn({ jobId, error: error.message }, 'progress could not be written');
      });
  }

  async #write(): Promise<void> {
    const { redis, jobId, token, lockMs, workerId, onState } = this.#options;
    const working = this.#isWorking ? workerId : '';
    // After a failure Redis may have it, so it is not written again.
    const spentMs = Math.round(this.#spentSeconds * 1000);
    this.#spentSeconds = 0;
    onState(await reportProgress(redis, { jobId, token, lockMs, working, spentMs }, this.#latest));
  }
}

/** Call when an attempt starts; only a job's first attempt counts. */
export function observeStart(job: Job, observer: Observer | undefined): void {
  if (job.attemptsStarted === 1 && job.processedOn !== undefined) {
    observer?.jobTaken(Math.max(0, job.processedOn - job.timestamp) / 1000);
  }
}

/** Retried attempts are not counted: BullMQ sets `finishedOn` only on the last one. */
export function observeEnds(worker: Worker, observer: Observer | undefined): void {
  worker.on('completed', (job) =>
    observer?.jobEnded({ state: 'completed' }, secondsOf(job), job.data.tenant),
  );
  worker.on('failed', (job, error) => {
    if (job?.finishedOn !== undefined) {
      const end = { state: 'failed', code: readFailure(error.message).code } as const;
      observer?.jobEnded(end, secondsOf(job), job.data.tenant);
    }
  });
}

function secondsOf({ processedOn, finishedOn }: Job): number | undefined {
  return processedOn === undefined || finishedOn === undefined
    ? undefined
    : (finishedOn - processedOn) / 1000;
}
