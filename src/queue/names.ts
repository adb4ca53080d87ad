/** What the queues, their jobs and our own keys are called in Redis. */
import { KEY_PREFIX } from './redis.ts';

/**
 * - `extract`: the job itself; its BullMQ record is the job's record.
 * - `completion`: parent of an extraction that has something to announce, released by its end.
 * - `webhook`, `voice`: the announcements, each with its own retry policy.
 */
export const queueNames = {
  extract: 'extract',
  completion: 'completion',
  webhook: 'webhook',
  voice: 'voice',
} as const;
export type QueueName = keyof typeof queueNames;

/** The hash that BullMQ keeps of a job. */
export function jobKey(queue: QueueName, id: string): string {
  return `${KEY_PREFIX}:${queueNames[queue]}:${id}`;
}

/** A structure of BullMQ's own, such as `prioritized` or `active`. */
export function queueKey(queue: QueueName, part: string): string {
  return `${KEY_PREFIX}:${queueNames[queue]}:${part}`;
}

/** A key of ours. None may look like one of BullMQ's, so the second segment is never a queue's name. */
export function ownKey(...segments: readonly string[]): string {
  return [KEY_PREFIX, 'sp', ...segments].join(':');
}

/** Ids of the jobs around an extraction follow from its own, so that a crash in the fan-out announces once. */
export const completionId = (jobId: string): string => `${jobId}-done`;
export const webhookId = (jobId: string): string => `${jobId}-webhook`;
export const voiceId = (jobId: string): string => `${jobId}-voice`;

/** Channel on which a cancellation reaches the worker that runs the job; the message is the job's id. */
export const CANCEL_CHANNEL = ownKey('cancel');
/** Channel that tells when the state of a job changed; the message is the job's id. */
export const CHANGE_CHANNEL = ownKey('change');
