/** The producers' side of the engine, by BullMQ's public interface alone, and a log of the tries, of which BullMQ keeps the last one only. */

import { Job, type KeepJobs, type Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import { DeliveryAttempt, type DeliveryProgress } from 'soundpost-contract/deliveries';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { z } from 'zod';
import type { QueueName } from '../jobs/names.ts';
import { openQueue } from '../jobs/open-queue.ts';
import { failingSinceMs } from './places.ts';
import { hostOf } from './post-webhook.ts';

interface FollowUpQueueOptions {
  readonly name: QueueName;
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long what has ended can be looked at and replayed. */
  readonly keep: { readonly delivered: KeepJobs; readonly failed: KeepJobs };
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

interface StoredFollowUp {
  /** Of its job. */
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  readonly status: DeliveryProgress['status'];
  /** Of the last try that failed. */
  readonly lastError: string | null;
  /** Those that have ended. */
  readonly tries: number;
  readonly isDelayed: boolean;
  /** ms since the epoch. */
  readonly addedAtMs: number;
}

const PAGE = 500;
const UNFINISHED = ['active', 'waiting', 'delayed'] as const;

export class FollowUpQueue {
  readonly name: QueueName;
  readonly log: AttemptLog;
  readonly #options: FollowUpQueueOptions;
  readonly #queue: Queue;

  constructor(options: FollowUpQueueOptions) {
    const { name, redis, logger, telemetry } = options;
    this.name = name;
    this.log = new AttemptLog(redis, name);
    this.#options = options;
    this.#queue = openQueue(name, redis, logger, telemetry);
  }

  /** The id makes it one, however often it is added. @param tries at most */
  async add(id: string, name: string, data: object, tries: number): Promise<void> {
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

  async find(id: string): Promise<StoredFollowUp | undefined> {
    const job = await Job.fromId(this.#queue, id);
    return job && stored(job, false);
  }

  /** How far it is, as its owner is shown it; undefined when there is no such follow-up. */
  async look(id: string): Promise<{ stored: StoredFollowUp; progress: DeliveryProgress } | undefined> {
    const [found, attempts] = await Promise.all([this.find(id), this.log.read(id)]);
    if (found === undefined) return undefined;
    const nextAtMs = found.status === 'pending' ? attempts.at(-1)?.nextAtMs : undefined;
    const progress = {
      deliveryId: id,
      status: found.status,
      // Null also while an attempt is under way.
      nextAttemptAt:
        nextAtMs === undefined || nextAtMs < redisNow() ? null : new Date(nextAtMs).toISOString(),
      attempts: attempts.map(({ nextAtMs: _, ...attempt }) => attempt),
    };
    return { stored: found, progress };
  }

  /**
   * Tries it once more, at once. What has ended gets the whole schedule again; what is pending goes
   * on with the tries that it has left. Answers false when there is no such follow-up.
   * @param changes of its payload
   */
  async replay(id: string, changes: object = {}): Promise<boolean> {
    const job = await Job.fromId(this.#queue, id);
    if (job === undefined) {
      return false;
    }
    const state = await job.getState();
    await job.updateData({ ...job.data, ...changes, notBeforeMs: undefined });
    if (state === 'completed' || state === 'failed') {
      const again = job.retry(state, { resetAttemptsMade: true, resetAttemptsStarted: true });
      // Somebody else may have asked for it at the same moment.
      await again.catch(async (error) => {
        if ((await job.getState()) === state) throw error;
      });
    } else if (state === 'delayed') {
      await job.promote();
    }
    return true;
  }

  /** Ends the wait of a follow-up. Answers false when there is none any more. */
  async promote(id: string): Promise<boolean> {
    const job = await Job.fromId(this.#queue, id);
    if (job !== undefined && (await job.isDelayed())) {
      await job.promote();
    }
    return job !== undefined && job.finishedOn === undefined;
  }

  /** What failed at this time or later, newest first. */
  async *failedSince(sinceMs: number): AsyncGenerator<StoredFollowUp> {
    for (let from = 0; ; from += PAGE) {
      const jobs = await this.#queue.getJobs(['failed'], from, from + PAGE - 1);
      for (const job of jobs) {
        if ((job.finishedOn ?? 0) < sinceMs) return;
        yield stored(job, false);
      }
      if (jobs.length < PAGE) return;
    }
  }

  /** What is shown of the host of this address; nothing where it does not keep failing. */
  async failingHost(url: string): Promise<Pick<DeliveryProgress, 'host'>> {
    const sinceMs = await failingSinceMs(this.#options.redis, this.name, hostOf(url));
    return sinceMs === undefined
      ? {}
      : { host: { state: 'failing', since: new Date(sinceMs).toISOString() } };
  }

  /** Everything that was not delivered and has not failed. */
  async *unfinished(): AsyncGenerator<StoredFollowUp> {
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

/** A kind may end without an error and say in its result that it has failed. */
const Result = z.object({ status: z.enum(['failed', 'unknown']) });

function stored(job: Job, isDelayed: boolean): StoredFollowUp {
  const { returnvalue, finishedOn } = job;
  // What a later try made good leaves its failure behind, so success is looked for first.
  const hasEnded = returnvalue !== null && returnvalue !== undefined;
  const isDelivered = hasEnded && !Result.safeParse(returnvalue).success;
  return {
    id: job.id ?? '',
    name: job.name,
    data: job.data,
    status: isDelivered ? 'delivered' : hasEnded || finishedOn !== undefined ? 'failed' : 'pending',
    lastError: job.failedReason ?? null,
    tries: job.attemptsMade,
    isDelayed,
    addedAtMs: job.timestamp,
  };
}

const LoggedAttempt = DeliveryAttempt.extend({
  /** When the next try was due; absent when there was none. */
  nextAtMs: z.number().optional(),
});
type LoggedAttempt = z.infer<typeof LoggedAttempt>;

class AttemptLog {
  readonly #redis: Redis;
  readonly #queue: QueueName;

  constructor(redis: Redis, queue: QueueName) {
    this.#redis = redis;
    this.#queue = queue;
  }

  /** Ids of webhooks came first; those of other queues may be the same. */
  #key(id: string): string {
    const isOfWebhook = this.#queue === 'webhook' || this.#queue === 'gateway-webhook';
    return isOfWebhook ? ownKey('attempts', id) : ownKey('attempts', this.#queue, id);
  }

  async add(id: string, attempt: LoggedAttempt, keepSeconds: number): Promise<void> {
    const key = this.#key(id);
    await this.#redis.multi().rpush(key, JSON.stringify(attempt)).expire(key, Math.ceil(keepSeconds)).exec();
  }

  /** Oldest first. */
  async read(id: string): Promise<LoggedAttempt[]> {
    const texts = await this.#redis.lrange(this.#key(id), 0, -1);
    return texts.map((text) => LoggedAttempt.parse(JSON.parse(text)));
  }

  count(id: string): Promise<number> {
    return this.#redis.llen(this.#key(id));
  }
}
