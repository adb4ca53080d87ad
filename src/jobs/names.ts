/** What the queues, their jobs and the jobs' files are called. */
import { outputFormats } from 'soundpost-contract/formats';
import type { NamedOutput } from 'soundpost-contract/output-request';
import { type Subtitles, subtitles as writtenAs } from 'soundpost-contract/transcripts';
import { ownKey } from 'soundpost-kit/redis/keys';

/**
 * - `extract`: the job itself; its BullMQ record is the job's record.
 * - `completion`: parent of an extraction that has something to announce, released by its end.
 * - `webhook`, `voice`, `transcript`: what follows, each with its own retry policy.
 * - `destination`: files that are put somewhere else.
 * - `gateway-webhook`: events of the gateway's instances, delivered by the active gateway.
 */
export const queueNames = {
  extract: 'extract',
  completion: 'completion',
  webhook: 'webhook',
  voice: 'voice',
  destination: 'destination',
  transcript: 'transcript',
  'gateway-webhook': 'gateway-webhook',
} as const;
export type QueueName = keyof typeof queueNames;

/** Ids of the jobs around an extraction follow from its own, so that a crash in the fan-out announces once. */
export const completionId = (jobId: string): string => `${jobId}-done`;
/** @param id of the job that is told of, or of what follows it */
export const webhookId = (id: string): string => `${id}-webhook`;
export const voiceId = (jobId: string): string => `${jobId}-voice`;
/** Id of the job that puts the file of an output to its destination. */
export const destinationId = (jobId: string, name: string): string => `${jobId}-destination-${name}`;
export const transcriptId = (jobId: string, name: string): string => `${jobId}-transcript-${name}`;
/** Id of the job that sends a note of a run, counted from 0. */
export const notePartId = (sendId: string, part: number): string =>
  part === 0 ? sendId : `${sendId}.${part}`;

/** Channel on which a cancellation reaches the worker that runs the job; the message is the job's id. */
export const CANCEL_CHANNEL = ownKey('cancel');
/** Channel that tells of jobs that were accepted: of each submission the first, as `<tenant> <id>`. */
export const ACCEPTED_CHANNEL = ownKey('accepted');
/** Channel that tells when the state of a job changed, and that it was accepted; the message is the job's id. */
export const CHANGE_CHANNEL = ownKey('change');
/** A sorted set: worker processes that are not known to be dead, by when they were heard of, Redis' TIME in ms. */
export const WORKER_BEATS_KEY = ownKey('worker-beats');
/** A sorted set: worker processes that died, by when that was found. */
export const DEAD_WORKERS_KEY = ownKey('dead-workers');

/** Start of the job that was last given an encoder (docs/decisions/0004-fairness.md). */
export const VIRTUAL_TIME_KEY = ownKey('virtual-time');

/** What the files of a job's attempts are called in the storage: also of attempts that left nothing but a name. */
interface AttemptFiles {
  /** Of each output, in order. */
  readonly outputs: readonly string[];
  /** What transcripts keep and write beside their audio. */
  readonly ofTranscripts: readonly string[];
  /** The rendition for a voice message. */
  readonly voice: string;
}

/** @param attemptToken names the attempt; no other attempt at any job has the same */
export function attemptFiles(
  jobId: string,
  attemptToken: string,
  outputs: readonly (Pick<NamedOutput, 'name' | 'format'> & { readonly subtitles?: Subtitles })[],
): AttemptFiles {
  const base = `files/${jobId}/${attemptToken}`;
  const files = outputs.map(({ name, format, subtitles }, index) => {
    // The first needs no name. A transcript begins as audio.
    const extension = subtitles === undefined ? outputFormats[format].extension : 'wav';
    const storageKey = `${base}${index === 0 ? '' : `-${name}`}.${extension}`;
    const beside = subtitles === undefined ? [] : Object.values(besideAudio({ storageKey, subtitles }));
    return { storageKey, beside };
  });
  return {
    outputs: files.map(({ storageKey }) => storageKey),
    ofTranscripts: files.flatMap(({ beside }) => beside),
    voice: `${base}.voice.ogg`,
  };
}

/** Beside the audio of a transcript: what was heard of its parts, until it has ended, and its text. */
export function besideAudio(audio: { readonly storageKey: string; readonly subtitles: Subtitles }): {
  readonly heard: string;
  readonly text: string;
} {
  const base = audio.storageKey.replace(/\.wav$/, '');
  return { heard: `${base}.heard.json`, text: `${base}.${writtenAs[audio.subtitles].extension}` };
}
