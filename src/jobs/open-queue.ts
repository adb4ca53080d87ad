/** BullMQ's queues on our connections. */

import { Job, type JobProgress, Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { isWrongType } from 'soundpost-kit/redis/record';
import { oldestWaitMs } from './bullmq-internals.ts';
import { type QueueName, queueNames } from './names.ts';

/** Options for every BullMQ class. */
export function connectionOptions(redis: Redis, telemetry?: Telemetry) {
  return { connection: redis, prefix: KEY_PREFIX, ...(telemetry && { telemetry }) };
}

/**
 * For queues and flow producers. BullMQ's version check fails for good on a slow Redis, so
 * packages/kit/src/redis/fitness.ts checks. Commands of the role `request` have deadlines.
 */
export function producerOptions(redis: Redis, telemetry?: Telemetry) {
  return { ...connectionOptions(redis, telemetry), skipVersionCheck: true, skipWaitingForReady: true };
}

/** Name of the stand-in for a job that BullMQ cannot read. */
const UNREADABLE = 'unreadable';

/** Whether all that is known of the job is its id: its hash or one of its fields is damaged. */
export function isStandIn({ name }: Pick<Job, 'name'>): boolean {
  return name === UNREADABLE;
}

class ReadingJob<Data, Result, Name extends string, Progress extends JobProgress> extends Job<
  Data,
  Result,
  Name,
  Progress
> {
  static override async fromId<T = unknown, R = unknown, N extends string = string>(
    queue: Parameters<typeof Job.fromId>[0],
    jobId: string,
  ): Promise<Job<T, R, N> | undefined> {
    try {
      return await Job.fromId<T, R, N>(queue, jobId);
    } catch (error) {
      if (!(error instanceof SyntaxError || isWrongType(error))) throw error;
      const job: Job = new ReadingJob(queue, UNREADABLE, {}, { timestamp: 0 }, jobId);
      job.failedReason = 'the record cannot be read: it is damaged';
      job.finishedOn = 0;
      return job as Job<T, R, N>;
    }
  }
}

/** One damaged job would break each list that it is in. */
class ReadingQueue extends Queue {
  protected override get Job(): typeof Job {
    return ReadingJob;
  }

  /** BullMQ reads a whole page in one script, which one key that holds no hash would break. */
  override async getJobs(...[types = [], start, end, asc]: Parameters<Queue['getJobs']>): Promise<Job[]> {
    try {
      return await super.getJobs(types, start, end, asc);
    } catch (error) {
      if (!isWrongType(error)) throw error;
      const ids = await this.getRanges([types].flat(), start, end, asc);
      const jobs = await Promise.all(ids.map((id) => this.getJob(id)));
      return jobs.filter((job) => job !== undefined);
    }
  }
}

/** The caller closes it, and `redis` after it. */
export function openQueue(name: QueueName, redis: Redis, logger: Logger, telemetry?: Telemetry): Queue {
  return new ReadingQueue(queueNames[name], producerOptions(redis, telemetry)).on('error', (error) =>
    logger.warn({ error: error.message }, `${name} queue`),
  );
}

/** How long a job waits for its confirmation, outside of the queue: then a worker removes it. */
export const UNCONFIRMED_MS = 10_000;

export type Queues = Readonly<Record<QueueName, Queue>>;

/** Read-only. The caller closes them, then `redis`. */
export function openQueues(redis: Redis, logger: Logger): Queues {
  const open = (name: QueueName): Queue => openQueue(name, redis, logger);
  return {
    extract: open('extract'),
    completion: open('completion'),
    webhook: open('webhook'),
    voice: open('voice'),
    destination: open('destination'),
    transcript: open('transcript'),
    'gateway-webhook': open('gateway-webhook'),
  };
}

export async function closeQueues(queues: Queues): Promise<void> {
  await Promise.all(Object.values(queues).map((queue) => queue.close()));
}

/** Jobs waiting for a worker, with or without a priority. */
export async function waitingJobs(queue: Queue): Promise<number> {
  const { prioritized = 0, waiting = 0 } = await queue.getJobCounts();
  return prioritized + waiting;
}

// The queues' lengths and ages, for monitoring.

interface QueueState {
  readonly queue: QueueName;
  /** Jobs waiting for a worker. */
  readonly waiting: number;
  readonly active: number;
  /** Jobs with a scheduled retry. */
  readonly delayed: number;
  /** Parents whose child is still running. */
  readonly waiting_children: number;
  /** Of the longest waiting job; 0 if none waits. */
  readonly oldestAgeSeconds: number;
}

/** @param redis of the role `request`, like the queues', so the answer has a deadline */
export async function readQueues(redis: Redis, queues: Queues): Promise<QueueState[]> {
  return Promise.all(
    Object.values(queueNames).map(async (queue) => {
      const [counts, ageMs] = await Promise.all([queues[queue].getJobCounts(), oldestWaitMs(redis, queue)]);
      const { prioritized = 0, waiting = 0, active = 0, delayed = 0 } = counts;
      return {
        queue,
        waiting: prioritized + waiting,
        active,
        delayed,
        waiting_children: counts['waiting-children'] ?? 0,
        oldestAgeSeconds: ageMs / 1000,
      };
    }),
  );
}
