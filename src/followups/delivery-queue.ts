/** The producers' side of the engine: deliveries are added, looked at and replayed by BullMQ's public interface alone. */
import { Job, type KeepJobs, type Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { QueueName } from '../jobs/names.ts';
import { openQueue } from '../jobs/open-queue.ts';
import { failingSinceMs } from '../jobs/try-places.ts';
import { DeliveryData } from './delivery-kind.ts';
import { hostOf } from './post-webhook.ts';

interface DeliveryQueueOptions {
  readonly name: QueueName;
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long what has ended can be looked at and replayed. */
  readonly keep: { readonly delivered: KeepJobs; readonly failed: KeepJobs };
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

export interface StoredDelivery {
  /** Of the job. */
  readonly id: string;
  readonly name: string;
  readonly data: DeliveryData;
  readonly status: 'pending' | 'delivered' | 'failed';
  /** Of the last try that failed. */
  readonly lastError: string | null;
  /** Those that have ended. */
  readonly tries: number;
  readonly isDelayed: boolean;
}

const PAGE = 500;
const UNFINISHED = ['active', 'waiting', 'delayed'] as const;

export class DeliveryQueue {
  readonly name: QueueName;
  readonly #options: DeliveryQueueOptions;
  readonly #queue: Queue;

  constructor(options: DeliveryQueueOptions) {
    const { name, redis, logger, telemetry } = options;
    this.name = name;
    this.#options = options;
    this.#queue = openQueue(name, redis, logger, telemetry);
  }

  /** The id makes it one delivery, however often it is added. @param tries at most */
  async add(id: string, name: string, data: DeliveryData, tries: number): Promise<void> {
    await this.#queue.add(name, data, {
      jobId: id,
      attempts: tries,
      timestamp: redisNow(),
      backoff: { type: 'schedule' },
      removeOnComplete: this.#options.keep.delivered,
      removeOnFail: this.#options.keep.failed,
      stackTraceLimit: 0,
    });
  }

  async find(id: string): Promise<StoredDelivery | undefined> {
    const job = await Job.fromId(this.#queue, id);
    return job && stored(job, false);
  }

  /**
   * Sends it once more, at once. What has ended gets the whole schedule again; what is pending goes
   * on with the tries that it has left. Answers false when there is no such delivery.
   */
  async replay(id: string): Promise<boolean> {
    const job = await Job.fromId(this.#queue, id);
    if (job === undefined) {
      return false;
    }
    const state = await job.getState();
    await job.updateData({ ...job.data, notBeforeMs: undefined });
    if (state === 'completed' || state === 'failed') {
      await job.retry(state, { resetAttemptsMade: true });
    } else if (state === 'delayed') {
      await job.promote();
    }
    return true;
  }

  /** Ends the wait of a delivery. Answers false when there is no such delivery any more. */
  async promote(id: string): Promise<boolean> {
    const job = await Job.fromId(this.#queue, id);
    if (job !== undefined && (await job.isDelayed())) {
      await job.promote();
    }
    return job !== undefined && job.finishedOn === undefined;
  }

  /** What failed at this time or later, newest first. */
  async *failedSince(sinceMs: number): AsyncGenerator<StoredDelivery> {
    for (let from = 0; ; from += PAGE) {
      const jobs = await this.#queue.getJobs(['failed'], from, from + PAGE - 1);
      for (const job of jobs) {
        if ((job.finishedOn ?? 0) < sinceMs) return;
        yield stored(job, false);
      }
      if (jobs.length < PAGE) return;
    }
  }

  /** Since when the host of this address keeps failing, ms since the epoch; undefined where it does not. */
  hostFailsSinceMs(url: string): Promise<number | undefined> {
    return failingSinceMs(this.#options.redis, this.name, hostOf(url));
  }

  /** Everything that was not delivered and has not failed. */
  async *unfinished(): AsyncGenerator<StoredDelivery> {
    for (const state of UNFINISHED) {
      for (let from = 0; ; from += PAGE) {
        const jobs = await this.#queue.getJobs([state], from, from + PAGE - 1, true);
        // One that was removed while the page was read is left out by BullMQ.
        for (const job of jobs) {
          yield stored(job, state === 'delayed');
        }
        if (jobs.length < PAGE) {
          break;
        }
      }
    }
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

function stored(job: Job, isDelayed: boolean): StoredDelivery {
  const data = DeliveryData.parse(job.data);
  // What a later try made good leaves its failure behind, so success is looked for first.
  const hasSucceeded = job.returnvalue !== null && job.returnvalue !== undefined;
  return {
    id: job.id ?? '',
    name: job.name,
    data,
    status: hasSucceeded ? 'delivered' : job.finishedOn === undefined ? 'pending' : 'failed',
    lastError: job.failedReason ?? null,
    tries: job.attemptsMade,
    isDelayed,
  };
}
