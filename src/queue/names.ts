/** What the queues, their jobs and the jobs' files are called. */
import { type FormatName, formatOf } from '../contract/formats.ts';
import { ownKey } from '../redis/keys.ts';

/**
 * - `extract`: the job itself; its BullMQ record is the job's record.
 * - `completion`: parent of an extraction that has something to announce, released by its end.
 * - `webhook`, `voice`: the announcements, each with its own retry policy.
 * - `gateway-webhook`: events of the gateway's instances, delivered by the active gateway.
 */
export const queueNames = {
  extract: 'extract',
  completion: 'completion',
  webhook: 'webhook',
  voice: 'voice',
  'gateway-webhook': 'gateway-webhook',
} as const;
export type QueueName = keyof typeof queueNames;

/** Ids of the jobs around an extraction follow from its own, so that a crash in the fan-out announces once. */
export const completionId = (jobId: string): string => `${jobId}-done`;
export const webhookId = (jobId: string): string => `${jobId}-webhook`;
export const voiceId = (jobId: string): string => `${jobId}-voice`;
/** Id of the job that sends a note of a run, counted from 0. */
export const notePartId = (sendId: string, part: number): string =>
  part === 0 ? sendId : `${sendId}.${part}`;

/** Channel on which a cancellation reaches the worker that runs the job; the message is the job's id. */
export const CANCEL_CHANNEL = ownKey('cancel');
/** Channel that tells of jobs that were accepted: of each submission the first, as `<tenant> <id>`. */
export const ACCEPTED_CHANNEL = ownKey('accepted');
/** Channel that tells when the state of a job changed; the message is the job's id. */
export const CHANGE_CHANNEL = ownKey('change');
/** A sorted set: worker processes that are not known to be dead, by when they were heard of, Redis' TIME in ms. */
export const WORKER_BEATS_KEY = ownKey('worker-beats');
/** A sorted set: worker processes that died, by when that was found. */
export const DEAD_WORKERS_KEY = ownKey('dead-workers');

/** Start of the job that was last given an encoder (docs/decisions/0004-fairness.md). */
export const VIRTUAL_TIME_KEY = ownKey('virtual-time');

/** What the files of a job's attempts are called in the storage: also of attempts that left nothing but a name. */
interface AttemptFiles {
  readonly output: string;
  /** The rendition for a voice message. */
  readonly voice: string;
}

/** @param attemptToken names the attempt; no other attempt at any job has the same */
export function attemptFiles(jobId: string, attemptToken: string, format: FormatName): AttemptFiles {
  const base = `files/${jobId}/${attemptToken}`;
  return { output: `${base}.${formatOf(format).extension}`, voice: `${base}.voice.ogg` };
}
