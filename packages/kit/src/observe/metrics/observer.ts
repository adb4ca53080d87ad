/**
 * Work that the parts of the service report, passed in like a logger. They do not know what becomes
 * of it (`recorder`). Every call is cheap, and none fails.
 */
import type { ErrorCode } from 'soundpost-contract/errors';
import type { OutputFormatName } from 'soundpost-contract/formats';
import type { GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import type { TransportKind } from 'soundpost-contract/gateway-instances';
import type { AwayReason } from '../away.ts';

export const submissionOutcomes = [
  'accepted',
  'rate_limited',
  'too_many_bytes',
  'too_many_unfinished',
  'queue_full',
] as const;
type SubmissionOutcome = (typeof submissionOutcomes)[number];

/** What holds a key back: a request of it is refused, or a transcript of it fails. */
export const keyLimits = [
  'reads',
  'submissions',
  'record_bytes',
  'unfinished_jobs',
  'uploads',
  'upload_bytes',
  'event_streams',
  'waiting_requests',
  'transcript_minutes',
  'stream_requests',
  'processor_seconds',
] as const;
export type KeyLimit = (typeof keyLimits)[number];

/** `await_encoder`: downloaded, waiting for a free encoder. `normalize` is part of `extract`. */
export const workSteps = [
  'download',
  'await_encoder',
  'analyze',
  'extract',
  'normalize',
  'finalize',
] as const;
type WorkStep = (typeof workSteps)[number];

/** `unreachable`: no answer in time, or a refused address. `gone`: 410, which ends the attempts. */
export const webhookOutcomes = ['delivered', 'rejected', 'gone', 'unreachable'] as const;
export type WebhookOutcome = (typeof webhookOutcomes)[number];

/** Webhooks of jobs, and of gateway instances. */
export const webhookKinds = ['job', 'instance'] as const;
type WebhookKind = (typeof webhookKinds)[number];

export const voiceTries = ['sent', 'not_now', 'refused', 'lost'] as const;
export type VoiceTry = (typeof voiceTries)[number];

export const voiceStatuses = ['sent', 'failed', 'unknown'] as const;
type VoiceStatus = (typeof voiceStatuses)[number];

/** `taken`: 2xx. `refused`: not retryable. `failed`: retryable. */
export const destinationTries = ['taken', 'refused', 'failed'] as const;
export type DestinationTry = (typeof destinationTries)[number];

export const destinationStatuses = ['completed', 'failed'] as const;
type DestinationStatus = (typeof destinationStatuses)[number];

/** For a part of a recording that was sent to the transcriber. */
export const transcriptTries = ['heard', 'not_now', 'refused'] as const;
type TranscriptTry = (typeof transcriptTries)[number];

export const transcriptEnds = ['completed', 'failed'] as const;
type TranscriptEnd = (typeof transcriptEnds)[number];

export const mediaTools = ['ffmpeg', 'ffprobe'] as const;
type MediaTool = (typeof mediaTools)[number];

export const toolEndings = ['completed', 'failed', 'aborted'] as const;
type ToolEnding = (typeof toolEndings)[number];

type JobEnd = { readonly state: 'completed' } | { readonly state: 'failed'; readonly code: ErrorCode };

export interface Observer {
  /** @param key the key's id */
  jobsSubmitted(outcome: SubmissionOutcome, count: number, key: string): void;
  /** A worker started a job for the first time. @param waitedSeconds since it was accepted */
  jobTaken(waitedSeconds: number): void;
  /** A job ended. @param seconds since its last start; undefined: never @param key its key's id */
  jobEnded(end: JobEnd, seconds: number | undefined, key: string): void;
  /** A request was answered 503, or an attempt put back, because a part of ours was away. */
  partAway(reason: AwayReason): void;
  /** A limit of the key was reached. @param key the key's id */
  keyHeld(key: string, limit: KeyLimit): void;
  /** An attempt at a job of the key used processor time. */
  keyCharged(key: string, processorSeconds: number): void;
  /** Called however the step ended. */
  stepEnded(step: WorkStep, seconds: number): void;
  /** A source was downloaded from its URL. */
  sourceFetched(bytes: { readonly size: number; readonly fetched: number }): void;
  outputMade(format: OutputFormatName, bytes: number, audioSeconds: number): void;
  webhookTried(kind: WebhookKind, outcome: WebhookOutcome, seconds: number): void;
  webhookGivenUp(kind: WebhookKind): void;
  voiceTried(outcome: VoiceTry, seconds: number): void;
  voiceEnded(status: VoiceStatus): void;
  destinationTried(outcome: DestinationTry, seconds: number): void;
  destinationEnded(status: DestinationStatus): void;
  transcriptTried(outcome: TranscriptTry, seconds: number): void;
  transcriptEnded(status: TranscriptEnd): void;
  /** @returns a function to call once when the tool has ended */
  toolStarted(tool: MediaTool): (ending: ToolEnding) => void;
  /** A voice message was sent to its network, or failed. */
  messageSent(
    transport: TransportKind,
    outcome: 'sent' | 'caller_gone' | GatewayErrorCode,
    seconds: number,
  ): void;
}

const nothing = (): void => undefined;

export const silentObserver: Observer = {
  jobsSubmitted: nothing,
  jobTaken: nothing,
  jobEnded: nothing,
  partAway: nothing,
  keyHeld: nothing,
  keyCharged: nothing,
  stepEnded: nothing,
  sourceFetched: nothing,
  outputMade: nothing,
  webhookTried: nothing,
  webhookGivenUp: nothing,
  voiceTried: nothing,
  voiceEnded: nothing,
  destinationTried: nothing,
  destinationEnded: nothing,
  transcriptTried: nothing,
  transcriptEnded: nothing,
  toolStarted: () => nothing,
  messageSent: nothing,
};
