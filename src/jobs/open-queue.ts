/** BullMQ's queues on our connections. */

import { Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
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

/** The caller closes it, and `redis` after it. */
export function openQueue(name: QueueName, redis: Redis, logger: Logger, telemetry?: Telemetry): Queue {
  return new Queue(queueNames[name], producerOptions(redis, telemetry)).on('error', (error) =>
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
