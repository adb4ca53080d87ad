/** Names of the queues, their jobs and the jobs' files. */
import { outputFormats } from 'soundpost-contract/formats';
import type { NamedOutput } from 'soundpost-contract/output-request';
import { type Subtitles, subtitles as writtenAs } from 'soundpost-contract/transcripts';
import { ownKey } from 'soundpost-kit/redis/keys';

/**
 * - `extract`: the job itself; its BullMQ record is the job's record.
 * - `completion`: parent of an extraction with follow-ups, released when it ends.
 * - `webhook`, `voice`, `transcript`: follow-ups, each with its own retry policy.
 * - `destination`: files delivered elsewhere.
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

/** Ids derive from the extraction's, so a fan-out repeated after a crash announces only once. */
export const completionId = (jobId: string): string => `${jobId}-done`;
/** @param id of the job, or of its follow-up */
export const webhookId = (id: string): string => `${id}-webhook`;
export const voiceId = (jobId: string): string => `${jobId}-voice`;
/** Id of the job that delivers an output's file. */
export const destinationId = (jobId: string, name: string): string => `${jobId}-destination-${name}`;
export const transcriptId = (jobId: string, name: string): string => `${jobId}-transcript-${name}`;
/** Id of the job that sends one note of a run, counted from 0. */
export const notePartId = (sendId: string, part: number): string =>
  part === 0 ? sendId : `${sendId}.${part}`;

/** Sends a cancellation to the job's worker; the message is the job's id. */
export const CANCEL_CHANNEL = ownKey('cancel');
/** Announces each accepted submission; the message is its tenant. */
export const ACCEPTED_CHANNEL = ownKey('accepted');
/** Announces that a job was accepted or changed; the message is its id. */
export const CHANGE_CHANNEL = ownKey('change');
/** Sorted set: worker processes not known to be dead, scored by last beat, Redis' TIME in ms. */
export const WORKER_BEATS_KEY = ownKey('worker-beats');
/** Sorted set: dead worker processes, scored by when the death was detected. */
export const DEAD_WORKERS_KEY = ownKey('dead-workers');

/** Start of the job that last got an encoder (docs/decisions/0004-fairness.md). */
export const VIRTUAL_TIME_KEY = ownKey('virtual-time');

/** Storage names of an attempt's files, known even if the attempt left nothing else. */
interface AttemptFiles {
  /** Of each output, in order. */
  readonly outputs: readonly string[];
  /** Files beside the transcripts' audio. */
  readonly ofTranscripts: readonly string[];
  /** The rendition for a voice message. */
  readonly voice: string;
}

/** @param attemptToken unique name of the attempt */
export function attemptFiles(
  jobId: string,
  attemptToken: string,
  outputs: readonly (Pick<NamedOutput, 'name' | 'format'> & { readonly subtitles?: Subtitles })[],
): AttemptFiles {
  const base = `files/${jobId}/${attemptToken}`;
  const files = outputs.map(({ name, format, subtitles }, index) => {
    // The first has no name in its key. A transcript starts as audio.
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

/** Files beside a transcript's audio: parts already transcribed, until it ends, and its text. */
export function besideAudio(audio: { readonly storageKey: string; readonly subtitles: Subtitles }): {
  readonly heard: string;
  readonly text: string;
} {
  const base = audio.storageKey.replace(/\.wav$/, '');
  return { heard: `${base}.heard.json`, text: `${base}.${writtenAs[audio.subtitles].extension}` };
}
