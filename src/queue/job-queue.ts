/** The producers' side of the job queue: accept, read, cancel. */

import { randomUUID } from 'node:crypto';
import { FlowProducer, type Queue, type Telemetry, UnrecoverableError } from 'bullmq';
import type { Logger } from '../observe/logger.ts';
import { type Observer, type SubmissionOutcome, silentObserver } from '../observe/metrics/observer.ts';
import type { Redis } from '../redis/connection.ts';
import type { Replication } from '../redis/replication.ts';
import { type CancelOutcome, markCancelled, noteErased, recordKey } from './bullmq-internals.ts';
import { findBatch, saveBatch } from './job-index.ts';
import { cancelledError, findJobRecord, type JobRecord } from './job-record.ts';
import { CHANGE_CHANNEL, completionId, type QueueName, queueNames } from './names.ts';
import { openQueue, producerOptions, waitingJobs } from './open-queue.ts';
import type { CompletionPayload, ExtractPayload } from './payloads.ts';
import { type Reservation, reserveSubmission, type SubmissionLimits } from './reservation.ts';
import { SubmissionJournal } from './submission-journal.ts';

interface JobQueueOptions {
  /** A connection of the role `request`. The caller closes it. */
  readonly redis: Redis;
  readonly limits: SubmissionLimits;
  /** Keeps an upload until the job has ended; for jobs that are submitted again because Redis has lost them. */
  readonly holdUpload: (file: string, jobId: string) => Promise<unknown>;
  /** Where submissions have to reach replicas before they are answered. */
  readonly replication?: Replication | undefined;
  /** How long the record of an ended job is kept, seconds. */
  readonly recordSeconds: number;
  readonly logger: Logger;
  readonly observer?: Observer;
  readonly telemetry?: Telemetry | undefined;
}

export interface NewJob {
  readonly jobId: string;
  readonly payload: ExtractPayload;
}

interface Accepted {
  readonly tenant: string;
  readonly jobs: readonly NewJob[];
}

/** For what was accepted once; nor does it cost its key anything a second time. */
const NO_LIMITS: SubmissionLimits = {
  submitPerMinute: Number.MAX_SAFE_INTEGER,
  unfinishedPerTenant: Number.MAX_SAFE_INTEGER,
  queueLimit: Number.MAX_SAFE_INTEGER,
};

/** Tries of a job that fails through no fault of its source, such as a full disk (decisions A7). */
const ATTEMPTS = 3;
/** Completed records are removed a few at a time whenever another job ends, so no ending pays for a backlog. */
const REMOVE_LIMIT = 100;
/** The janitor reads in the record which files there are, after it is no longer answered. */
const RECORD_OUTLIVES_SECONDS = 24 * 60 * 60;
/** What a submission is counted as. */
const observedOutcome: Readonly<Record<Reservation['outcome'], SubmissionOutcome>> = {
  reserved: 'accepted',
  'rate-limited': 'rate_limited',
  'too-many-unfinished': 'too_many_unfinished',
  'queue-full': 'queue_full',
};
/** The parent must outlive its child's record: removing a parent removes its children. */
const PARENT_OUTLIVES_SECONDS = 24 * 60 * 60;

export class JobQueue {
  readonly #redis: Redis;
  readonly #options: JobQueueOptions;
  readonly #extract: Queue;
  readonly #flows: FlowProducer;
  readonly #observer: Observer;
  readonly #journal: SubmissionJournal<Accepted>;

  constructor(options: JobQueueOptions) {
    this.#options = options;
    this.#redis = options.redis;
    this.#observer = options.observer ?? silentObserver;
    this.#journal = new SubmissionJournal({
      redis: options.redis,
      restore: (accepted) => this.#restore(accepted),
      logger: options.logger,
    });
    const { redis, logger, telemetry } = options;
    this.#extract = openQueue('extract', redis, logger, telemetry);
    this.#flows = new FlowProducer(producerOptions(redis, telemetry)).on('error', (error) =>
      logger.warn({ error: error.message }, 'job queue'),
    );
  }

  /**
   * Takes all jobs of one tenant or none.
   * @param repeated the ids were made from an idempotency key and may have been added before a crash: those are left as
   * they are, since a flow that is added a second time would wait for a child that has ended
   */
  async submit(tenant: string, jobs: readonly NewJob[], repeated = false): Promise<Reservation> {
    const fresh = repeated ? await this.#unknown(jobs) : jobs;
    const reservation = await reserveSubmission(
      this.#redis,
      tenant,
      fresh.map(({ jobId, payload }) => ({ jobId, priority: payload.options.priority })),
      this.#options.limits,
      Date.now(),
    );
    if (reservation.outcome === 'reserved' && fresh.length > 0) {
      await this.#add(fresh, reservation.priorities);
    }
    if (reservation.outcome === 'reserved') {
      this.#journal.note({ tenant, jobs });
    }
    this.#observer.jobsSubmitted(observedOutcome[reservation.outcome], fresh.length);
    return reservation;
  }

  /** Adds again what Redis has lost of an accepted submission, whatever the limits say by now. */
  async #restore({ tenant, jobs }: Accepted): Promise<number> {
    const lost = await this.#unknown(jobs);
    if (lost.length > 0) {
      for (const { jobId, payload } of lost) {
        // Where the upload is gone, too, the job says so.
        if (payload.source.type === 'upload') await this.#options.holdUpload(payload.source.file, jobId);
      }
      const places = lost.map(({ jobId, payload }) => ({ jobId, priority: payload.options.priority }));
      const now = Date.now();
      const reservation = await reserveSubmission(this.#redis, tenant, places, NO_LIMITS, now, 0);
      if (reservation.outcome === 'reserved') {
        await this.#add(lost, reservation.priorities);
      }
    }
    // It is written last, so it may be all that is lost.
    const batchId = jobs[0]?.payload.batchId ?? null;
    if (batchId !== null && (await findBatch(this.#redis, tenant, batchId)) === undefined) {
      const jobIds = jobs.map(({ jobId }) => jobId);
      await saveBatch(this.#redis, tenant, batchId, jobIds, this.#options.recordSeconds);
    }
    return lost.length;
  }

  async #unknown(jobs: readonly NewJob[]): Promise<NewJob[]> {
    const known = await Promise.all(jobs.map(({ jobId }) => this.#extract.getJob(jobId)));
    return jobs.filter((_job, index) => known[index] === undefined);
  }

  async #add(jobs: readonly NewJob[], priorities: readonly number[]): Promise<void> {
    const keep = { age: this.#options.recordSeconds + RECORD_OUTLIVES_SECONDS, limit: REMOVE_LIMIT };
    const keepParent = { ...keep, age: keep.age + PARENT_OUTLIVES_SECONDS };
    const nodes = jobs.map(({ jobId, payload }, index) => {
      const extraction = {
        name: 'extract',
        queueName: queueNames.extract,
        data: payload,
        opts: {
          jobId,
          priority: priorities[index] ?? 1,
          attempts: ATTEMPTS,
          backoff: { type: 'exponential', delay: 1000, jitter: 0.5 },
          removeOnComplete: keep,
          removeOnFail: keep,
          stackTraceLimit: 0,
        },
      };
      if (payload.options.webhook === undefined && payload.options.voiceMessage === undefined) {
        return extraction;
      }
      const announcement: CompletionPayload = { version: 1, jobId };
      return {
        name: 'complete',
        queueName: queueNames.completion,
        data: announcement,
        opts: {
          jobId: completionId(jobId),
          attempts: 20,
          backoff: { type: 'exponential', delay: 500 },
          removeOnComplete: keepParent,
          removeOnFail: keepParent,
          stackTraceLimit: 0,
        },
        children: [{ ...extraction, opts: { ...extraction.opts, continueParentOnFailure: true } }],
      };
    });
    const [only] = nodes;
    if (nodes.length === 1 && only !== undefined && !('children' in only)) {
      await this.#extract.add(only.name, only.data, only.opts);
    } else {
      await this.#flows.addBulk(nodes);
    }
  }

  /**
   * Resolves once as many replicas as are wanted have these jobs of a queue, and all that was written before.
   * @throws NotReplicated: they may run all the same
   */
  async confirm(queue: QueueName, jobIds: readonly string[]): Promise<void> {
    try {
      await this.#options.replication?.confirm(jobIds.map((jobId) => recordKey(queue, jobId)));
    } catch (error) {
      // Nobody was told that they were accepted: whoever asks again may get others.
      this.#journal.forget(({ jobs }) => jobs.some(({ jobId }) => jobIds.includes(jobId)));
      throw error;
    }
  }

  async read(jobId: string): Promise<JobRecord | undefined> {
    return findJobRecord(this.#redis, jobId);
  }

  /** The records of those ids that there are. */
  async readMany(jobIds: readonly string[]): Promise<JobRecord[]> {
    const records = await Promise.all(jobIds.map((jobId) => this.read(jobId)));
    return records.filter((record) => record !== undefined);
  }

  /** Cancels an unfinished job: one that waits ends at once, one that runs within the time its worker needs to stop. */
  async cancel(jobId: string): Promise<CancelOutcome> {
    const token = randomUUID();
    const outcome = await markCancelled(this.#redis, jobId, token);
    if (outcome === 'claimed') {
      const job = await this.#extract.getJob(jobId);
      await job?.moveToFailed(new UnrecoverableError(JSON.stringify(cancelledError)), token, false);
      this.#observer.jobEnded({ state: 'failed', code: cancelledError.code }, undefined);
    }
    return outcome;
  }

  /** Notes that the files of a finished job were erased, so that a download answers as after expiry. */
  async markErased(jobId: string): Promise<void> {
    await noteErased(this.#redis, jobId);
    await this.#redis.publish(CHANGE_CHANNEL, jobId);
  }

  /** Jobs that wait for a worker. */
  async waiting(): Promise<number> {
    return waitingJobs(this.#extract);
  }

  async close(): Promise<void> {
    await this.#journal.close();
    await this.#flows.close();
    await this.#extract.close();
  }
}
