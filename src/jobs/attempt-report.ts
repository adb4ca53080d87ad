/** What is told of a running attempt: to its job's record how far it is and that its worker lives, to the observer its beginning and end. */
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
  /** Told with each answer whether the job is still ours and wanted. */
  readonly onState: (state: AttemptState) => void;
  readonly logger: Logger;
}

/** How often at least: a cancellation whose message was lost waits for no longer than this. */
const LONGEST_TICK_MS = 500;
/** A lock is renewed well before it runs out. */
const TICKS_IN_A_LOCK = 4;

export class AttemptReport {
  readonly #options: AttemptReportOptions;
  readonly #ticker: NodeJS.Timeout;
  #latest: ExtractProgress = { progress: 0, currentStep: 'downloading_video', inputFile: null };
  #isWorking = false;
  #writing: Promise<void> = Promise.resolve();

  /** Begins to write, every so often also without news: each write renews the lock, and its answer carries a cancellation. */
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

  /** Resolves once the record says that from now on the death of this worker counts against the job. */
  async beginWork(): Promise<void> {
    this.#isWorking = true;
    this.#writing = this.#writing.then(() => this.#write());
    await this.#writing;
  }

  /** Writes a last time: the step in which a job ended must stand in its record, also when it failed between two ticks. */
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
    onState(await reportProgress(redis, { jobId, token, lockMs, working }, this.#latest));
  }
}

/** To be called when an attempt begins; only the first one of a job counts. */
export function observeStart(job: Job, observer: Observer | undefined): void {
  if (job.attemptsStarted === 1 && job.processedOn !== undefined) {
    observer?.jobTaken(Math.max(0, job.processedOn - job.timestamp) / 1000);
  }
}

/** Of attempts that another one follows nothing is told: BullMQ gives only the job's last one its time of end. */
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
