/** What BullMQ 6.7.0 calls its keys, written down apart from src/jobs/bullmq-internals.ts. */
import type { QueueName } from '../../src/jobs/names.ts';

/** The hash of a job. */
export const jobKey = (queue: QueueName, id: string): string => `{soundpost}:${queue}:${id}`;

/** A structure of a queue, such as `prioritized` or `active`. */
export const queueKey = (queue: QueueName, part: string): string => `{soundpost}:${queue}:${part}`;
