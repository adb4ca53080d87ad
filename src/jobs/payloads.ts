/**
 * The queues' payloads. Each has an edition and refuses fields that it does not know, so that in a
 * rolling upgrade no worker does half of what is asked (docs/how-to/upgrade.md). None contains our
 * secrets: Redis holds them in clear text.
 */

import { DestinationState } from 'soundpost-contract/destination';
import { ErrorBody } from 'soundpost-contract/errors';
import { BatchId, JobId, OutputName, TenantId } from 'soundpost-contract/ids';
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
import { JobOptions, VoiceMessageRequest } from 'soundpost-contract/job-request';
import { AcceptedOutputs, LoneOutputRequest, transcriptionFields } from 'soundpost-contract/output-request';
import { SpokenLanguage, Subtitles, TranscriptState } from 'soundpost-contract/transcripts';
import { readValue, UnreadableRecord } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import { QueuedDestinations } from './destinations.ts';
import { besideAudio } from './names.ts';
import { QueuedSource } from './sources.ts';

const version = z.literal(1);

export const ExtractPayload = z.strictObject({
  version,
  tenant: TenantId,
  source: QueuedSource,
  /** As requested, one of the two; {@link outputsOf} makes one list. */
  output: LoneOutputRequest.optional(),
  outputs: AcceptedOutputs.optional(),
  /** Where files are delivered; not repeated in the outputs. */
  destinations: QueuedDestinations.optional(),
  options: JobOptions,
  batchId: BatchId.nullable(),
  retryOf: JobId.nullable(),
});
export type ExtractPayload = z.infer<typeof ExtractPayload>;

/** In place of one that cannot be read: it asks for nothing. */
export const unknownPayload: ExtractPayload = {
  ...{ version: 1, tenant: '', source: { type: 'url', url: '' }, options: { priority: 'normal' } },
  ...{ batchId: null, retryOf: null },
};

/** What the engines of the queues keep beside a payload, in the same object. */
const besidePayload = ['notBeforeMs', 'triesBefore'];

/** @param data of a queue's job @throws UnreadableRecord */
export function readPayload<Schema extends z.ZodType>(schema: Schema, data: unknown): z.output<Schema> {
  if (typeof data !== 'object' || data === null) throw new UnreadableRecord();
  return readValue(
    schema,
    Object.fromEntries(Object.entries(data).filter(([name]) => !besidePayload.includes(name))),
  );
}

/** The part of a job that changes while it runs, in BullMQ's `progress`. */
export const ExtractProgress = z.object({
  progress: z.int().min(0).max(99),
  currentStep: ProcessingStep,
  estimatedTimeRemaining: z.number().min(0).optional(),
  inputFile: InputFile.nullable(),
});
export type ExtractProgress = z.infer<typeof ExtractProgress>;

const VoiceNotePart = z.object({
  /** Its start in the file, bytes. */
  offset: z.int().min(0),
  size: z.int().min(1),
  seconds: z.number(),
  fitsVoiceBubble: z.boolean(),
});
export type VoiceNotePart = z.infer<typeof VoiceNotePart>;

/** A finished file in the storage. */
const stored = { storageKey: z.string() };
const StoredAudio = OutputFile.omit({ url: true, destination: true }).extend(stored);
const StoredFile = z.discriminatedUnion('format', [
  StoredAudio,
  WaveformFile.omit({ url: true, destination: true }).extend(stored),
]);
export type StoredFile = z.infer<typeof StoredFile>;

/** Source of a transcript, once the job has completed. */
const TranscriptAudio = z.object({
  name: OutputName,
  /** WAV, 16 kHz, mono: kept until the transcript ends, and not downloadable. */
  storageKey: z.string(),
  /** The output whose audio is heard for this one too, so that it has none of its own. */
  heardAs: OutputName.optional(),
  subtitles: Subtitles,
  /** As requested. */
  language: SpokenLanguage.optional(),
  ...transcriptionFields,
  /** A caller waits for it: it fails after a few attempts instead of a day. */
  isAwaited: z.boolean().optional(),
  /** Name of the transcript's file. */
  filename: z.string(),
  timeline: TranscriptFile.shape.timeline,
  /** Why there is no file: the transcript fails with it. */
  notMade: z.string().optional(),
});
export type TranscriptAudio = z.infer<typeof TranscriptAudio>;

const StoredTranscript = TranscriptFile.omit({ url: true, destination: true }).extend({
  storageKey: z.string(),
});
export type StoredTranscript = z.infer<typeof StoredTranscript>;

/** What an attempt publishes, in BullMQ's `returnvalue`; accepted only from the lock's holder. */
export const ExtractResult = z.object({
  version,
  inputFile: InputFile,
  warnings: z.array(JobWarning),
  /** The first output's file; null of a probe, or if only a transcript is made. */
  outputFile: StoredAudio.nullable(),
  /** The other outputs' files, in order. */
  otherFiles: z.array(StoredFile).optional(),
  /** The transcripts' audio, in order. */
  transcripts: z.array(TranscriptAudio).optional(),
  /** The voice message's rendition, if requested. */
  voice: z
    .object({
      storageKey: z.string(),
      /** True if all notes do. */
      fitsVoiceBubble: z.boolean(),
      seconds: z.number(),
      /** Of a run: its notes, consecutive in the file. */
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
  return outputFile === null ? [] : [outputFile, ...otherFiles];
}

/** Storage keys of everything that the attempt published or that is derived from it. */
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

export const CompletionPayload = z.strictObject({ version, jobId: JobId });
export type CompletionPayload = z.infer<typeof CompletionPayload>;

export const WebhookPayload = z.strictObject({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** The webhook-id: the same for every attempt and every replay. */
  deliveryId: z.string(),
  event: z.enum([
    'job.completed',
    'job.failed',
    'voice.updated',
    'transcript.updated',
    'destination.updated',
  ]),
  url: z.string(),
  /** For voice.updated: how it ended; the record may not show this yet. */
  voiceMessage: VoiceMessageState.optional(),
  /** For transcript.updated: how it ended; its record may not show this yet. */
  transcript: TranscriptState.optional(),
  transcriptFile: StoredTranscript.optional(),
  /** For destination.updated: the output's name and how its delivery ended. */
  name: OutputName.optional(),
  destination: DestinationState.optional(),
  /** When the event happened, ms since the epoch. */
  eventTimeMs: z.number(),
});
export type WebhookPayload = z.infer<typeof WebhookPayload>;

export const VoicePayload = z.strictObject({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** Identifies this message: a result can be sent again. */
  sendId: z.string(),
  /** Index of the note in a run, from 0. */
  part: z.int().min(0),
  /** How often a stopped run was resumed from this note: each end is announced separately. */
  round: z.int().min(0),
  request: VoiceMessageRequest,
  /** The round that sends a message of its own: the one before was not delivered. */
  keyRound: z.int().min(1).optional(),
  /** A caller asked for it: it is sent only once its API has confirmed it. */
  isAsked: z.boolean().optional(),
});
export type VoicePayload = z.infer<typeof VoicePayload>;

/** How a voice message ended (decisions C). */
export const VoiceOutcome = z.object({
  status: z.enum(['sent', 'failed', 'unknown']),
  key: MessageKey.nullable(),
  messageStatus: MessageStatus.nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
});
export type VoiceOutcome = z.infer<typeof VoiceOutcome>;

/** Small: the destination's secrets are read from the job's own record. */
export const DestinationPayload = z.strictObject({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** Of the output. */
  name: OutputName,
  /** Scheme, host and port of the destination. */
  origin: z.string(),
  /** For a transcript, whose own record may not show it yet. */
  transcript: StoredTranscript.optional(),
});
export type DestinationPayload = z.infer<typeof DestinationPayload>;

/** How a delivery ended (decisions A8). */
export const DestinationOutcome = z.object({
  status: z.enum(['completed', 'failed']),
  error: DestinationState.shape.error,
  /** Id of the replay that ended so; absent of the first delivery. */
  replay: z.string().optional(),
});
export type DestinationOutcome = z.infer<typeof DestinationOutcome>;

export const TranscriptPayload = z.strictObject({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** Of the output, of several that are heard together the first. */
  name: OutputName,
});
export type TranscriptPayload = z.infer<typeof TranscriptPayload>;

/** How a recording's transcripts ended (decisions A8); a file for each that is heard together. */
export const TranscriptOutcome = z.discriminatedUnion('status', [
  z.object({ status: z.literal('completed'), files: z.array(StoredTranscript) }),
  z.object({
    status: z.literal('failed'),
    error: ErrorBody,
    /** Because the key's minutes of the day did not suffice. */
    isOverBudget: z.boolean().optional(),
  }),
]);
export type TranscriptOutcome = z.infer<typeof TranscriptOutcome>;
