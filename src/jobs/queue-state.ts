/** How much stands in the queues, and for how long, for whoever watches the service. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { oldestWaitMs } from './bullmq-internals.ts';
import { type QueueName, queueNames } from './names.ts';
import type { Queues } from './open-queue.ts';

interface QueueState {
  readonly queue: QueueName;
  /** Jobs that wait for a worker. */
  readonly waiting: number;
  readonly active: number;
  /** Jobs whose next try has a time. */
  readonly delayed: number;
  /** Parents whose child has not ended. */
  readonly waiting_children: number;
  /** Of the job that has waited longest; 0 when none waits. */
  readonly oldestAgeSeconds: number;
}

/** @param redis of the role `request`, like that of the queues: the answer comes, or fails, within its deadline */
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
