/** The engine's producers, on BullMQ's public API, and a log of attempts: BullMQ keeps just one. */

import type { Job, KeepJobs, Queue, Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import { DeliveryAttempt, type DeliveryProgress } from 'soundpost-contract/deliveries';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { ofItsType, readText, unlessUnreadable, withEdition } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import type { QueueName } from '../jobs/names.ts';
import { isStandIn, openQueue } from '../jobs/open-queue.ts';
import { failingSinceMs } from './endpoints.ts';
import type { PlaceSet } from './places.ts';

interface FollowUpQueueOptions {
  readonly name: QueueName;
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long an ended follow-up can be read and replayed. */
  readonly keep: { readonly delivered: KeepJobs; readonly failed: KeepJobs };
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

interface StoredFollowUp {
  /** The job's id. */
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  readonly status: DeliveryProgress['status'];
  /** Error of the last failed attempt. */
  readonly lastError: string | null;
  /** Completed attempts. */
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

  /**
   * The id makes it unique, however often it is added.
   * @param tries at most
   * @param delayMs default 0
   */
  async add(id: string, name: string, data: object, tries: number, delayMs = 0): Promise<void> {
    await this.#queue.add(name, data, {
      jobId: id,
      delay: delayMs,
      attempts: tries,
      timestamp: redisNow(),
      backoff: { type: 'schedule' },
      removeOnComplete: this.#options.keep.delivered,
      removeOnFail: this.#options.keep.failed,
      stackTraceLimit: 0,
    });
  }

  async find(id: string): Promise<StoredFollowUp | undefined> {
    const job = await this.#queue.getJob(id);
    return job && stored(job, false);
  }

  /** Its progress as shown to its owner; undefined if there is none. */
  async look(id: string): Promise<{ stored: StoredFollowUp; progress: DeliveryProgress } | undefined> {
    const [found, attempts] = await Promise.all([this.find(id), this.log.read(id)]);
    if (found === undefined) return undefined;
    const nextAtMs = found.status === 'pending' ? attempts.at(-1)?.nextAtMs : undefined;
    const progress = {
      deliveryId: id,
      status: found.status,
      // Also null during an attempt.
      nextAttemptAt:
        nextAtMs === undefined || nextAtMs < redisNow() ? null : new Date(nextAtMs).toISOString(),
      attempts: attempts.map(({ nextAtMs: _, ...attempt }) => attempt),
    };
    return { stored: found, progress };
  }

  /**
   * Attempts it again at once. An ended one gets the whole schedule again, a pending one keeps its
   * remaining attempts. False if there is no such follow-up.
   * @param changes of its payload
   */
  async replay(id: string, changes: object = {}): Promise<boolean> {
    const job = await this.#queue.getJob(id);
    if (job === undefined || isStandIn(job)) {
      return false;
    }
    const state = await job.getState();
    const hasEnded = state === 'completed' || state === 'failed';
    const anew = hasEnded ? { triesBefore: undefined } : {};
    await job.updateData({ ...job.data, ...anew, ...changes, notBeforeMs: undefined });
    if (hasEnded) {
      const again = job.retry(state, { resetAttemptsMade: true, resetAttemptsStarted: true });
      // A concurrent request may have done the same.
      await again.catch(async (error) => {
        if ((await job.getState()) === state) throw error;
      });
    } else if (state === 'delayed') {
      await job.promote();
    }
    return true;
  }

  /** Ends a follow-up's delay. False if it no longer exists. */
  async promote(id: string): Promise<boolean> {
    const job = await this.#queue.getJob(id);
    if (job !== undefined && (await job.isDelayed())) {
      await job.promote();
    }
    return job !== undefined && job.finishedOn === undefined;
  }

  /** Failures at or after this time, newest first. */
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

  /** State of an endpoint of the key; empty unless it keeps failing. */
  async failingEndpoint(
    key: string,
    url: string,
    places: PlaceSet['name'] = this.name,
  ): Promise<Pick<DeliveryProgress, 'endpoint'>> {
    const sinceMs = await failingSinceMs(this.#options.redis, places, key, url);
    return sinceMs === undefined
      ? {}
      : { endpoint: { state: 'failing', failedSince: new Date(sinceMs).toISOString() } };
  }

  /** All that is neither delivered nor failed. */
  async *unfinished(): AsyncGenerator<StoredFollowUp> {
    for (const state of UNFINISHED) {
      for (let from = 0; ; from += PAGE) {
        const jobs = await this.#queue.getJobs([state], from, from + PAGE - 1, true);
        // BullMQ omits jobs removed while the page was read.
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

/** A kind can end without an error and report failure in its result. */
const Result = z.object({ status: z.enum(['failed', 'unknown']) });

function stored(job: Job, isDelayed: boolean): StoredFollowUp {
  const { returnvalue, finishedOn } = job;
  // A later success keeps the earlier failure, so check success first.
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
  /** When the next attempt was due; absent if none was. */
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

  /** Webhook ids came first, without a prefix; other queues' ids can be the same. */
  #key(id: string): string {
    const isOfWebhook = this.#queue === 'webhook' || this.#queue === 'gateway-webhook';
    return isOfWebhook ? ownKey('attempts', id) : ownKey('attempts', this.#queue, id);
  }

  async add(id: string, attempt: LoggedAttempt, keepSeconds: number): Promise<void> {
    const key = this.#key(id);
    await this.#redis
      .multi()
      .rpush(key, JSON.stringify(withEdition(attempt)))
      .expire(key, Math.ceil(keepSeconds))
      .exec();
  }

  /** Oldest first. */
  async read(id: string): Promise<LoggedAttempt[]> {
    const texts = await unlessUnreadable(
      () => ofItsType(this.#redis.lrange(this.#key(id), 0, -1)),
      (): string[] => [],
    );
    const attempts = texts.map((text) =>
      unlessUnreadable(
        () => readText(LoggedAttempt, text),
        () => undefined,
      ),
    );
    return (await Promise.all(attempts)).filter((attempt) => attempt !== undefined);
  }

  count(id: string): Promise<number> {
    return unlessUnreadable(
      () => ofItsType(this.#redis.llen(this.#key(id))),
      () => 0,
    );
  }
}
