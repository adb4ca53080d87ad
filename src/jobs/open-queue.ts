/** BullMQ's queues on connections of ours. */
import { Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { type QueueName, queueNames } from './names.ts';

/** What each of BullMQ's classes is told. */
export function connectionOptions(redis: Redis, telemetry?: Telemetry) {
  return { connection: redis, prefix: KEY_PREFIX, ...(telemetry && { telemetry }) };
}

/**
 * What a queue or flow producer is told besides. Each would ask Redis for its version once, and fail for good where that answer is late; the version is
 * looked at by packages/kit/src/redis/fitness.ts. Nor does it wait for Redis: a command of the role `request` fails in time by its connection's deadline.
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

export type Queues = Readonly<Record<QueueName, Queue>>;

/** For those who only look. The caller closes them, and `redis` after them. */
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

/** How many jobs wait for a worker, with a priority or without. */
export async function waitingJobs(queue: Queue): Promise<number> {
  const { prioritized = 0, waiting = 0 } = await queue.getJobCounts();
  return prioritized + waiting;
}
