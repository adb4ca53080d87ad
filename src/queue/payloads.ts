/**
 * What stands in the queues. Every payload carries a version, so that in a rolling upgrade each side can tell what it
 * reads. Nothing here is a secret of ours: Redis holds it in clear text.
 */
import { z } from 'zod';
import { BatchId, JobId, TenantId, UploadId } from '../contract/ids.ts';
import {
  InputFile,
  JobWarning,
  MessageKey,
  MessageStatus,
  OutputFile,
  ProcessingStep,
  VoiceMessageState,
} from '../contract/job.ts';
import { JobOptions, OutputRequest, UrlSource, VoiceMessageRequest } from '../contract/job-request.ts';

const version = z.literal(1);

/** An upload keeps its size and its caller's name for it, since the upload itself may expire before the record does. */
export const QueuedSource = z.discriminatedUnion('type', [
  UrlSource,
  z.strictObject({ type: z.literal('upload'), file: UploadId, name: z.string() }),
]);
export type QueuedSource = z.infer<typeof QueuedSource>;

export const ExtractPayload = z.object({
  version,
  /** It counts once its API has confirmed it (docs/decisions/0031-accepted-or-never.md). Jobs of the first edition count at once. */
  isProvisional: z.boolean().optional(),
  tenant: TenantId,
  source: QueuedSource,
  output: OutputRequest,
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

/** What an attempt publishes; BullMQ's `returnvalue`, accepted only from the holder of the job's lock. */
export const ExtractResult = z.object({
  version,
  inputFile: InputFile,
  warnings: z.array(JobWarning).default([]),
  outputFile: OutputFile.omit({ url: true }).extend({ storageKey: z.string() }),
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

export const CompletionPayload = z.object({ version, jobId: JobId });
export type CompletionPayload = z.infer<typeof CompletionPayload>;

export const WebhookPayload = z.object({
  version,
  tenant: TenantId,
  jobId: JobId,
  /** The webhook-id: the same for every try and every replay. */
  deliveryId: z.string(),
  event: z.enum(['job.completed', 'job.failed', 'voice.updated']),
  url: z.string(),
  /** Of voice.updated: how the sending ended, which the record may not tell yet. */
  voiceMessage: VoiceMessageState.optional(),
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
  part: z.int().min(0).default(0),
  /** How often somebody had a stopped run go on from this note: each end is announced by itself. */
  round: z.int().min(0).default(0),
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
