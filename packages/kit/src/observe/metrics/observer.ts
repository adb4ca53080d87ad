/**
 * What the parts of the service tell of their work, in its own words. Handed in as a logger is; what becomes of it (`recorder.ts`) is
 * not theirs to know. Every call is cheap, and none fails.
 */
import type { ErrorCode } from 'soundpost-contract/errors';
import type { OutputFormatName } from 'soundpost-contract/formats';
import type { GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import type { TransportKind } from 'soundpost-contract/gateway-instances';

export const submissionOutcomes = ['accepted', 'rate_limited', 'too_many_unfinished', 'queue_full'] as const;
type SubmissionOutcome = (typeof submissionOutcomes)[number];

/** `await_encoder`: downloaded, and waiting for a place among the encoders. `normalize` is a part of `extract`. */
export const workSteps = [
  'download',
  'await_encoder',
  'analyze',
  'extract',
  'normalize',
  'finalize',
] as const;
type WorkStep = (typeof workSteps)[number];

/** `unreachable`: no answer, in time or at all, or the address is refused. `gone`: 410, which ends the tries. */
export const webhookOutcomes = ['delivered', 'rejected', 'gone', 'unreachable'] as const;
export type WebhookOutcome = (typeof webhookOutcomes)[number];

/** Whose webhook: that of a job, or that of an instance of the gateway. */
export const webhookKinds = ['job', 'instance'] as const;
type WebhookKind = (typeof webhookKinds)[number];

export const voiceTries = ['sent', 'not_now', 'refused', 'lost'] as const;
export type VoiceTry = (typeof voiceTries)[number];

export const voiceStatuses = ['sent', 'failed', 'unknown'] as const;
type VoiceStatus = (typeof voiceStatuses)[number];

/** `taken`: 2xx. `refused`: no further try would go better. `failed`: another one may. */
export const destinationTries = ['taken', 'refused', 'failed'] as const;
export type DestinationTry = (typeof destinationTries)[number];

export const destinationStatuses = ['completed', 'failed'] as const;
type DestinationStatus = (typeof destinationStatuses)[number];

/** Of a part that was sent to the transcriber. */
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
  /** @param key whose, by its id */
  jobsSubmitted(outcome: SubmissionOutcome, count: number, key: string): void;
  /** A worker takes a job up for the first time. @param waitedSeconds since it was accepted */
  jobTaken(waitedSeconds: number): void;
  /** A job ended for good. @param seconds since it was last taken up; undefined where it never was @param key whose, by its id */
  jobEnded(end: JobEnd, seconds: number | undefined, key: string): void;
  /** An attempt at a job of the key used processor time. */
  keyCharged(key: string, processorSeconds: number): void;
  /** However the step ended. */
  stepEnded(step: WorkStep, seconds: number): void;
  /** A source came from its URL. */
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
  /** @returns to be called once when the tool has ended */
  toolStarted(tool: MediaTool): (ending: ToolEnding) => void;
  /** A voice message was handed to its network, or was not. */
  messageSent(transport: TransportKind, outcome: 'sent' | GatewayErrorCode, seconds: number): void;
}

const nothing = (): void => undefined;

export const silentObserver: Observer = {
  jobsSubmitted: nothing,
  jobTaken: nothing,
  jobEnded: nothing,
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
