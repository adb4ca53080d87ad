/** The producers' side of the job queue: accept, read, cancel. */

import { randomUUID } from 'node:crypto';
import { FlowProducer, type Job, type Queue, type Telemetry, UnrecoverableError } from 'bullmq';
import { within } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import { transcriptsOf } from 'soundpost-contract/output-request';
import type { KeptAnswer } from 'soundpost-kit/http/idempotency';
import { type Observer, silentObserver } from 'soundpost-kit/observe/metrics/observer';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Replication } from 'soundpost-kit/redis/replication';
import { decide } from 'soundpost-kit/redis/until-taken';
import { confirmJobs, heldJobs, markCancelled, noteErased, recordKey } from './bullmq-internals.ts';
import { withoutQuery, withoutSecrets } from './destinations.ts';
import { findBatch, saveBatch, unfinishedIds } from './job-index.ts';
import { cancelledError, findJobRecord, glanceAtJob, type JobGlance, type JobRecord } from './job-record.ts';
import { CANCEL_CHANNEL, CHANGE_CHANNEL, completionId, type QueueName, queueNames } from './names.ts';
import { openQueue, producerOptions, UNCONFIRMED_MS, waitingJobs } from './open-queue.ts';
import type { CompletionPayload, ExtractPayload } from './payloads.ts';
import {
  listsOf,
  type Reservation,
  refuseSubmission,
  reserveSubmission,
  type SubmissionLimits,
} from './reservation.ts';
import { SubmissionJournal } from './submission-journal.ts';
import { removeUnreadable } from './unreadable-jobs.ts';

interface JobQueueOptions {
  /** A connection of the role `request`. The caller closes it. */
  readonly redis: Redis;
  readonly limits: SubmissionLimits;
  /** Keeps an upload until the job ends; used when Redis lost the job and it is resubmitted. */
  readonly holdUpload: (file: string, jobId: string) => Promise<unknown>;
  /** Waits for replicas before a submission is answered. */
  readonly replication?: Replication | undefined;
  /** How long the record of an ended job is kept, seconds. */
  readonly recordSeconds: number;
  /** How long a job waits for its confirmation; default {@link UNCONFIRMED_MS}. */
  readonly unconfirmedMs?: number;
  readonly logger: Logger;
  readonly observer?: Observer;
  readonly telemetry?: Telemetry | undefined;
}

export interface NewJob {
  readonly jobId: string;
  readonly payload: ExtractPayload;
}

interface SubmitOptions {
  /** Keeps jobs that a crashed attempt added: a flow added twice waits for an ended child. */
  readonly repeated?: boolean;
  /** Must succeed before the jobs count. */
  readonly alongside?: (() => Promise<void>) | undefined;
  /** The answer under the request's Idempotency-Key, stored by the script that confirms. */
  readonly answer?: ((reservation: Reserved) => KeptAnswer | undefined) | undefined;
}

type Reserved = Extract<Reservation, { outcome: 'reserved' }>;

interface Accepted {
  readonly tenant: string;
  readonly jobs: readonly NewJob[];
  readonly kept?: KeptAnswer | undefined;
}

/** For accepted jobs that are restored; they cost their key nothing again. */
const NO_LIMITS: SubmissionLimits = {
  submitPerMinute: Number.MAX_SAFE_INTEGER,
  unfinishedPerTenant: Number.MAX_SAFE_INTEGER,
  queueLimit: Number.MAX_SAFE_INTEGER,
};

/** Attempts of a job that fails for other reasons than its source (decisions A7). */
const ATTEMPTS = 3;
/** Each end of a job removes only a few old records, so none pays for a backlog. */
const REMOVE_LIMIT = 100;
/** The janitor finds the files in the record after it can no longer be read. */
const RECORD_OUTLIVES_SECONDS = 24 * 60 * 60;
const CLOSED_WITHIN_MS = 2000;
/** The metric's name for each outcome. */
const observedOutcome: Readonly<Record<Reservation['outcome'], Parameters<Observer['jobsSubmitted']>[0]>> = {
  reserved: 'accepted',
  'rate-limited': 'rate_limited',
  'too-many-bytes': 'too_many_bytes',
  'too-many-unfinished': 'too_many_unfinished',
  'queue-full': 'queue_full',
};
/** The parent must outlive its child's record: removing a parent removes its children. */
const PARENT_OUTLIVES_SECONDS = 24 * 60 * 60;

const idOf = ({ jobId }: NewJob): string => jobId;

/** A source's query can hold a secret, so it is not searched. */
const namedJob = ({ jobId, payload: { source, options } }: NewJob) => ({
  jobId,
  names: [source.type === 'url' ? withoutQuery(source.url) : source.name, options.filename ?? ''],
});

/** Records read at the same time. */
const READ_AT_ONCE = 100;

/** Whether the job has follow-ups. */
function hasFollowUps({
  options: { webhook, voiceMessage },
  destinations,
  ...asked
}: ExtractPayload): boolean {
  const wanted = [webhook, voiceMessage, destinations];
  return wanted.some((each) => each !== undefined) || transcriptsOf(asked).length > 0;
}

export class JobQueue {
  readonly #redis: Redis;
  readonly #options: JobQueueOptions;
  readonly #extract: Queue;
  readonly #flows: FlowProducer;
  readonly #observer: Observer;
  readonly #journal: SubmissionJournal<Accepted>;
  /** Confirmations not yet answered by Redis. */
  readonly #late = new Set<Promise<void>>();

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
   * Accepts all jobs or none; if it rejects, none ever starts (decision 0031-accepted-or-never.md).
   * @throws NotReplicated if replicas lack them; otherwise why Redis did not accept them in time
   */
  async submit(
    tenant: string,
    jobs: readonly NewJob[],
    { repeated = false, alongside, answer }: SubmitOptions = {},
  ): Promise<Reservation> {
    const jobIds = jobs.map(idOf);
    const fresh = repeated ? await this.#unknown(jobs) : jobs;
    const now = redisNow();
    try {
      const reservation = await reserveSubmission(
        this.#redis,
        tenant,
        fresh.map(({ jobId, payload }) => ({
          jobId,
          priority: payload.options.priority,
          bytes: Buffer.byteLength(JSON.stringify(payload)),
        })),
        this.#options.limits,
        now,
      );
      this.#observer.jobsSubmitted(observedOutcome[reservation.outcome], fresh.length, tenant);
      if (reservation.outcome === 'reserved') {
        if (fresh.length > 0) await this.#add(fresh, reservation.priorities, now);
        await alongside?.();
        await this.replicated('extract', jobIds);
        await this.#commit({ tenant, jobs, kept: answer?.(reservation) });
        // The confirmation should be replicated too, but acceptance no longer depends on it.
        await this.replicated('extract', jobIds).catch(() => undefined);
      }
      return reservation;
    } catch (error) {
      refuseSubmission(this.#redis, tenant, fresh.map(idOf)).catch(() => undefined);
      throw error;
    }
  }

  /**
   * The jobs exist, so they are accepted; a confirmation that fails is repeated until it succeeds.
   * @throws Redis' error reply
   */
  async #commit(accepted: Accepted): Promise<void> {
    // Workers may have dropped unconfirmed jobs, or Redis lost them: they are added again.
    const again = () => this.#restore(accepted).then(() => this.#confirm(accepted));
    const { late } = await decide(() => this.#confirm(accepted), again);
    this.#journal.note(accepted);
    const noted = late.then((isDone) => {
      this.#late.delete(noted);
      const jobIds = accepted.jobs.map(idOf);
      if (!isDone) this.#options.logger.error({ jobIds }, 'accepted jobs could not be confirmed');
    });
    this.#late.add(noted);
  }

  #confirm({ tenant, jobs, kept }: Accepted): Promise<boolean> {
    return confirmJobs(this.#redis, { tenant, lists: listsOf(tenant), jobs: jobs.map(namedJob), kept });
  }

  /** Re-adds jobs of an accepted submission that Redis lost, ignoring all limits. */
  async #restore(accepted: Accepted): Promise<number> {
    const { tenant, jobs } = accepted;
    const lost = await this.#unknown(jobs);
    if (lost.length > 0) {
      for (const { jobId, payload } of lost) {
        // If the upload is gone too, the job reports it.
        if (payload.source.type === 'upload') await this.#options.holdUpload(payload.source.file, jobId);
      }
      const places = lost.map(({ jobId, payload }) => ({ jobId, priority: payload.options.priority }));
      const now = redisNow();
      const reservation = await reserveSubmission(this.#redis, tenant, places, NO_LIMITS, now, 0);
      if (reservation.outcome === 'reserved') {
        await this.#add(lost, reservation.priorities, now);
      }
    }
    await this.#confirm(accepted);
    // Written last, so possibly the only thing lost.
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

  /** @param timestamp of submission, the same as in the indexes */
  async #add(jobs: readonly NewJob[], priorities: readonly number[], timestamp: number): Promise<void> {
    const keep = { age: this.#options.recordSeconds + RECORD_OUTLIVES_SECONDS, limit: REMOVE_LIMIT };
    const keepParent = { ...keep, age: keep.age + PARENT_OUTLIVES_SECONDS };
    const nodes = jobs.map(({ jobId, payload }, index) => {
      const extraction = {
        name: 'extract',
        queueName: queueNames.extract,
        data: payload,
        opts: {
          jobId,
          timestamp,
          delay: this.#options.unconfirmedMs ?? UNCONFIRMED_MS,
          priority: priorities[index] ?? 1,
          attempts: ATTEMPTS,
          backoff: { type: 'exponential', delay: 1000, jitter: 0.5 },
          removeOnComplete: keep,
          removeOnFail: keep,
          stackTraceLimit: 0,
        },
      };
      if (!hasFollowUps(payload)) {
        return extraction;
      }
      const completion: CompletionPayload = { version: 1, jobId };
      return {
        name: 'complete',
        queueName: queueNames.completion,
        data: completion,
        opts: {
          jobId: completionId(jobId),
          timestamp,
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
   * Resolves once enough replicas have these jobs of a queue and everything written before.
   * @throws NotReplicated
   */
  async replicated(queue: QueueName, jobIds: readonly string[]): Promise<void> {
    await this.#options.replication?.confirm(jobIds.map((jobId) => recordKey(queue, jobId)));
  }

  async read(jobId: string): Promise<JobRecord | undefined> {
    return findJobRecord(this.#redis, jobId);
  }

  /** The existing records among those ids. */
  async readMany(jobIds: readonly string[]): Promise<JobRecord[]> {
    const records = await Promise.all(jobIds.map((jobId) => this.read(jobId)));
    return records.filter((record) => record !== undefined);
  }

  /** What lists filter by, in order; undefined where there is no record. Stop reading to end it. */
  async *glances(jobIds: readonly string[]): AsyncGenerator<JobGlance | undefined> {
    for (let from = 0; from < jobIds.length; from += READ_AT_ONCE) {
      const some = jobIds.slice(from, from + READ_AT_ONCE);
      yield* await Promise.all(some.map((jobId) => glanceAtJob(this.#redis, jobId)));
    }
  }

  /** Cancels an unfinished job: a waiting one at once, a running one once its worker stops. */
  async cancel(jobId: string) {
    const token = randomUUID();
    const outcome = await markCancelled(this.#redis, jobId, token);
    if (outcome === 'claimed') {
      const job: Job<ExtractPayload> | undefined = await this.#extract.getJob(jobId);
      // It ended at once: of its request only what is shown is kept (decisions A6).
      const shown = job && withoutSecrets(job.data);
      if (shown !== undefined) await job?.updateData(shown);
      await job?.moveToFailed(new UnrecoverableError(JSON.stringify(cancelledError)), token, false);
      const end = { state: 'failed', code: cancelledError.code } as const;
      this.#observer.jobEnded(end, undefined, job?.data.tenant ?? '');
    }
    return outcome;
  }

  /**
   * Removes a job whose record cannot be read.
   * @returns storage keys where its files may lie
   */
  async removeUnreadable(tenant: string, jobId: string): Promise<string[]> {
    const keys = await removeUnreadable(this.#redis, tenant, jobId);
    await this.#redis.publish(CANCEL_CHANNEL, jobId);
    await this.#redis.publish(CHANGE_CHANNEL, jobId);
    return keys;
  }

  /** Cancels the tenant's running jobs. @returns how many */
  async cancelRunning(tenant: string): Promise<number> {
    const [held, unfinished] = await Promise.all([
      heldJobs(this.#redis, 'extract'),
      unfinishedIds(this.#redis, tenant),
    ]);
    const taken = new Set(held.map(({ jobId }) => jobId));
    const running = unfinished.filter((jobId) => taken.has(jobId));
    await Promise.all(running.map((jobId) => this.cancel(jobId)));
    return running.length;
  }

  /** Marks a finished job's files as erased: downloads then answer as after expiry. */
  async markErased(jobId: string): Promise<void> {
    await noteErased(this.#redis, jobId);
    await this.#redis.publish(CHANGE_CHANNEL, jobId);
  }

  /** Jobs waiting for a worker. */
  async waiting(): Promise<number> {
    return waitingJobs(this.#extract);
  }

  async close(): Promise<void> {
    await within(CLOSED_WITHIN_MS, () => Promise.all(this.#late)).catch(() => undefined);
    await this.#journal.close();
    await this.#flows.close();
    await this.#extract.close();
  }
}
