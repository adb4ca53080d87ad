/** BullMQ's queues on our connections. */
import { Queue, type Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
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
