/**
 * What stands in the queues. Every payload carries a version, so that in a rolling upgrade each side can tell what it
 * reads. Nothing here is a secret of ours: Redis holds it in clear text.
 */

import { DestinationState } from 'soundpost-contract/destination';
import { ErrorBody } from 'soundpost-contract/errors';
import { BatchId, JobId, OutputName, TenantId, UploadId } from 'soundpost-contract/ids';
import {
  InputFile,
  JobWarning,
  MessageKey,
  MessageStatus,
  OutputFile,
  ProcessingStep,
  TranscriptFile,
  VoiceMessageState,
  WaveformFile,
} from 'soundpost-contract/job';
import { JobOptions, UrlSource, VoiceMessageRequest } from 'soundpost-contract/job-request';
import { OutputRequest, OutputsRequest } from 'soundpost-contract/output-request';
import { SpokenLanguage, Subtitles, TranscriptState } from 'soundpost-contract/transcripts';
import { z } from 'zod';
import { QueuedDestinations } from './destinations.ts';
import { besideAudio } from './names.ts';

const version = z.literal(1);

/** An upload keeps its size and its caller's name for it, since the upload itself may expire before the record does. */
export const QueuedSource = z.discriminatedUnion('type', [
  UrlSource,
  z.strictObject({ type: z.literal('upload'), file: UploadId, name: z.string() }),
]);
export type QueuedSource = z.infer<typeof QueuedSource>;

export const ExtractPayload = z.object({
  version,
  tenant: TenantId,
  source: QueuedSource,
  /** As asked for, one of the two; {@link outputsOf} makes one list of them. */
  output: OutputRequest.optional(),
  outputs: OutputsRequest.optional(),
  /** Where the files are put; left out of the outputs themselves. */
  destinations: QueuedDestinations.optional(),
  options: JobOptions,
  batchId: BatchId.nullable(),
  retryOf: JobId.nullable(),
});
export type ExtractPayload = z.infer<typeof ExtractPayload>;

/** The part of a job that changes while it runs; BullMQ's `progress` field. */
export const ExtractProgress = z.object({
  progress: z.int().min(0).max(99),
  currentStep: ProcessingStep,
  estimatedTimeRemaining: z.number().min(0).optional(),
  inputFile: InputFile.nullable(),
});
export type ExtractProgress = z.infer<typeof ExtractProgress>;

const VoiceNotePart = z.object({
  /** Where it begins in the file, bytes. */
  offset: z.int().min(0),
  size: z.int().min(1),
  seconds: z.number(),
  fitsVoiceBubble: z.boolean(),
});
export type VoiceNotePart = z.infer<typeof VoiceNotePart>;

/** A finished file as it is stored. */
const stored = { storageKey: z.string() };
const StoredAudio = OutputFile.omit({ url: true, destination: true }).extend(stored);
const StoredFile = z.discriminatedUnion('format', [
  StoredAudio,
  WaveformFile.omit({ url: true, destination: true }).extend(stored),
]);
export type StoredFile = z.infer<typeof StoredFile>;

/** What a transcript is made of, when the job has completed. */
const TranscriptAudio = z.object({
  name: OutputName,
  /** WAV, 16 kHz, mono: kept until the transcript has ended, and not to be downloaded. */
  storageKey: z.string(),
  subtitles: Subtitles,
  /** As asked for. */
  language: SpokenLanguage.optional(),
  /** Of the transcript. */
  filename: z.string(),
  timeline: TranscriptFile.shape.timeline,
  /** Why there is no such file: the transcript fails with it. */
  notMade: z.string().optional(),
});
export type TranscriptAudio = z.infer<typeof TranscriptAudio>;

const StoredTranscript = TranscriptFile.omit({ url: true, destination: true }).extend({
  storageKey: z.string(),
});
export type StoredTranscript = z.infer<typeof StoredTranscript>;

/** What an attempt publishes; BullMQ's `returnvalue`, accepted only from the holder of the job's lock. */
export const ExtractResult = z.object({
  version,
  inputFile: InputFile,
  warnings: z.array(JobWarning),
  /** Of the first output. */
  outputFile: StoredAudio,
  /** Of the other outputs, in order. */
  otherFiles: z.array(StoredFile).optional(),
  /** The audio of the transcripts, in order. */
  transcripts: z.array(TranscriptAudio).optional(),
  /** The rendition for a voice message, where one was asked for. */
  voice: z
    .object({
      storageKey: z.string(),
      /** Of all notes. */
      fitsVoiceBubble: z.boolean(),
      seconds: z.number(),
      /** Of a run: the notes in the file, one after the other. */
      parts: z.array(VoiceNotePart).optional(),
    })
    .nullable(),
});
export type ExtractResult = z.infer<typeof ExtractResult>;

/** The files of all outputs, in order. */
export function filesOf({
  outputFile,
  otherFiles = [],
}: Pick<ExtractResult, 'outputFile' | 'otherFiles'>): readonly StoredFile[] {
  return [outputFile, ...otherFiles];
}

/** Where everything lies, or will, that the attempt published and that is made of it. */
export function storageKeysOf(result: ExtractResult | null | undefined): string[] {
  if (!result) return [];
  const keys = [
    ...filesOf(result).map(({ storageKey }) => storageKey),
    ...(result.transcripts ?? []).flatMap((audio) => [
      audio.storageKey,
      ...Object.values(besideAudio(audio)),
    ]),
  ];
  return result.voice === null ? keys : [...keys, result.voice.storageKey];
}

export const CompletionPayload = z.object({ version, jobId: JobId });
export type CompletionPayload = z.infer<typeof CompletionPayload>;

export const WebhookPayload = z.object({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** The webhook-id: the same for every try and every replay. */
  deliveryId: z.string(),
  event: z.enum([
    'job.completed',
    'job.failed',
    'voice.updated',
    'transcript.updated',
    'destination.updated',
  ]),
  url: z.string(),
  /** Of voice.updated: how the sending ended, which the record may not tell yet. */
  voiceMessage: VoiceMessageState.optional(),
  /** Of transcript.updated: how it ended, which its record may not tell yet. */
  transcript: TranscriptState.optional(),
  transcriptFile: StoredTranscript.optional(),
  /** Of destination.updated: the name of the output, and how its put ended. */
  name: OutputName.optional(),
  destination: DestinationState.optional(),
  /** When the event happened, ms since the epoch. */
  eventTimeMs: z.number(),
});
export type WebhookPayload = z.infer<typeof WebhookPayload>;

export const VoicePayload = z.object({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** Names this sending: a result may be sent again. */
  sendId: z.string(),
  /** Which note of a run, counted from 0. */
  part: z.int().min(0),
  /** How often somebody had a stopped run go on from this note: each end is announced by itself. */
  round: z.int().min(0),
  request: VoiceMessageRequest,
});
export type VoicePayload = z.infer<typeof VoicePayload>;

/** How the sending of a voice message ended (decisions C). */
export const VoiceOutcome = z.object({
  status: z.enum(['sent', 'failed', 'unknown']),
  key: MessageKey.nullable(),
  messageStatus: MessageStatus.nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
});
export type VoiceOutcome = z.infer<typeof VoiceOutcome>;

/** Small: what is secret of the destination is opened from the job's own record. */
export const DestinationPayload = z.object({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** Of the output. */
  name: OutputName,
  /** Scheme, host and port of the destination. */
  origin: z.string(),
  /** Of a transcript, whose own record may not tell yet. */
  transcript: StoredTranscript.optional(),
});
export type DestinationPayload = z.infer<typeof DestinationPayload>;

/** How a put ended (decisions A8). */
export const DestinationOutcome = z.object({
  status: z.enum(['completed', 'failed']),
  error: DestinationState.shape.error,
});
export type DestinationOutcome = z.infer<typeof DestinationOutcome>;

export const TranscriptPayload = z.object({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** Of the output. */
  name: OutputName,
});
export type TranscriptPayload = z.infer<typeof TranscriptPayload>;

/** How a transcript ended (decisions A8). */
export const TranscriptOutcome = z.discriminatedUnion('status', [
  z.object({ status: z.literal('completed'), file: StoredTranscript }),
  z.object({ status: z.literal('failed'), error: ErrorBody }),
]);
export type TranscriptOutcome = z.infer<typeof TranscriptOutcome>;
