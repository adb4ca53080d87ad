/** The queues' lengths and ages, for monitoring. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { oldestWaitMs } from './bullmq-internals.ts';
import { type QueueName, queueNames } from './names.ts';
import type { Queues } from './open-queue.ts';

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
