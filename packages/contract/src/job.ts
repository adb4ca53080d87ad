/**
 * A job as the service answers it (audio-extraction.md "Job", decisions A4 and C). Sizes are bytes,
 * durations seconds, times ISO 8601 in UTC.
 */
import { z } from 'zod';
import { DestinationState } from './destination.ts';
import { ErrorBody } from './errors.ts';
import { FormatName } from './formats.ts';
import { BatchId, JobId, OutputName } from './ids.ts';
import { JobOptions } from './job-request.ts';
import {
  AcceptedOutputs,
  type AskedOutputs,
  isProbe,
  LoneOutputRequest,
  outputsOf,
} from './output-request.ts';
import { Subtitles, TranscriptState } from './transcripts.ts';

const jobStatuses = ['queued', 'processing', 'completed', 'failed'] as const;
export const JobStatus = z.enum(jobStatuses);
export type JobStatus = z.infer<typeof JobStatus>;

/** In the order of a job; see {@link stepsOf}. */
export const processingSteps = [
  'downloading_video',
  'analyzing_video',
  'extracting_audio',
  'normalizing_audio',
  'finalizing',
] as const;
export const ProcessingStep = z.enum(processingSteps);
export type ProcessingStep = z.infer<typeof ProcessingStep>;

/** The steps of a probe. */
export const probeSteps = ['downloading_video', 'analyzing_video'] as const;

/** The steps of a job; `normalizing_audio` only when requested. */
export function stepsOf(asked: AskedOutputs): readonly ProcessingStep[] {
  if (isProbe(asked)) return probeSteps;
  const isLevelled = outputsOf(asked).some((output) => 'normalize' in output && output.normalize);
  return processingSteps.filter((step) => isLevelled || step !== 'normalizing_audio');
}

export const Track = z.object({
  index: z.int().min(0).meta({ example: 0 }),
  codec: z.string().meta({ example: 'aac' }),
  language: z.string().nullable().meta({ example: 'en' }),
  channels: z.int().meta({ example: 2 }),
  layout: z.string().nullable().default(null).meta({
    description: 'Channel layout, as ffmpeg names it; null if unknown',
    example: 'stereo',
  }),
  sampleRate: z.int().meta({ example: 48_000 }),
  default: z.boolean().meta({ example: true }),
  decodable: z.boolean().default(true).meta({
    description: 'Whether the track can be extracted',
    example: true,
  }),
  encrypted: z.boolean().default(false).meta({ example: false }),
});
export type Track = z.infer<typeof Track>;

/**
 * Null only in a job that failed before its analysis; `size` is known while its upload is kept. Of
 * a probe `duration` is null where the track cannot be counted.
 */
export const InputFile = z.object({
  name: z.string().meta({ example: 'keynote.mp4' }),
  size: z.int().min(0).nullable().meta({ description: 'Bytes', example: 734_003_200 }),
  duration: z.number().min(0).nullable().meta({ description: 'Seconds of audio, counted', example: 2712.48 }),
  format: z.string().nullable().meta({
    description: 'The container, such as mp4, mov, mkv, webm, mpegts',
    example: 'mov,mp4,m4a,3gp,3g2,mj2',
  }),
  tracks: z.array(Track),
});
export type InputFile = z.infer<typeof InputFile>;

export const Loudness = z.object({
  inputLufs: z
    .number()
    .meta({ description: 'Integrated loudness of the source, LUFS (BS.1770)', example: -23.4 }),
  outputLufs: z.number().meta({ description: 'Measured on the finished file, LUFS', example: -16.1 }),
  truePeakDbtp: z.number().meta({ description: 'True peak of the finished file, dBTP', example: -1.2 }),
  gainDb: z.number().meta({ description: 'The one gain that was applied, dB', example: 7.3 }),
});

/** Where the output is on the source's clock (decisions A2a). */
const OutputTimeline = z.object({
  startOffset: z
    .number()
    .min(0)
    .meta({ description: 'Position of the output’s first sample, seconds', example: 0 }),
  filledSeconds: z.number().min(0).meta({ description: 'Silence added for gaps, seconds', example: 0 }),
});

/** What a caller should know of a job that completed nevertheless. */
export const JobWarning = z.object({
  code: z
    .enum(['TRUNCATED', 'SILENT', 'ONE_SIDED', 'CANCELLED_OUT', 'GAPS_FILLED', 'SEGMENTS_MISSING'])
    .meta({
      description:
        'TRUNCATED: the file was cut off. SILENT: an output peaks below −60 dBFS. ONE_SIDED: one of two channels is silent, so mono is the other one. CANCELLED_OUT: two channels are out of phase, so mono is the left one. GAPS_FILLED: more than 1 s of silence was added. SEGMENTS_MISSING: parts of the stream are marked as missing or were not sent',
    }),
  message: z.string(),
  output: OutputName.optional().meta({ description: 'The output concerned, if it is only one' }),
  seconds: z.number().optional().meta({ description: 'Seconds that were filled or are missing' }),
});

/** Of a finished file of any kind. */
const file = {
  name: OutputName.meta({ description: 'The output’s name; audio for output', example: 'audio' }),
  filename: z.string().meta({ example: 'keynote.mp3' }),
  url: z.string().optional().meta({
    description:
      'Signed address: gives anybody access to the file until expiresAt. Absent after the file was erased',
    example:
      'https://soundpost.example/v1/download/job_5f0c2a9be41d7783?expires=1767312000&signature=2b7f9a51',
  }),
  size: z.int().min(0).meta({ description: 'Bytes', example: 65_100_211 }),
  duration: z
    .number()
    .min(0)
    .meta({ description: 'Seconds, counted from the decoded audio', example: 2712.48 }),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .meta({ example: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08' }),
  expiresAt: z.iso.datetime().meta({ example: '2026-01-02T00:00:00.000Z' }),
  timeline: OutputTimeline,
  destination: DestinationState.optional().meta({
    description: 'If the file has a destination, its own or the job’s',
  }),
};

export const OutputFile = z.object({
  ...file,
  format: FormatName.meta({ example: 'mp3' }),
  bitrate: z
    .string()
    .regex(/^\d+k$/)
    .meta({ description: 'Measured, not as requested', example: '192k' }),
  codec: z.string().meta({ example: 'mp3' }),
  channels: z.int().positive().meta({ example: 2 }),
  sampleRate: z.int().positive().meta({ example: 48_000 }),
  copied: z
    .boolean()
    .meta({ description: 'Whether the source’s audio was copied instead of encoded', example: false }),
  loudness: Loudness.optional(),
});
export type OutputFile = z.infer<typeof OutputFile>;

/** JSON of audiowaveform, version 2, mono and 8 bits: see {@link Waveform}. */
export const WaveformFile = z.object({
  ...file,
  filename: z.string().meta({ example: 'keynote-peaks.json' }),
  format: z.literal('waveform'),
});

export const Waveform = z.object({
  version: z.literal(2),
  channels: z.literal(1),
  sample_rate: z.int().positive().meta({ description: 'Hz, as the source', example: 48_000 }),
  samples_per_pixel: z.int().positive().meta({ description: 'Samples per pair', example: 2400 }),
  bits: z.literal(8),
  length: z.int().min(0).meta({ description: 'Pairs in data', example: 3 }),
  data: z.array(z.int().min(-128).max(127)).meta({
    description: 'Pairs of lowest and highest sample',
    example: [0, 0, -12, 14, -71, 66],
  }),
});

/** The speech, as subtitles or text in UTF-8. `duration` is the audio's. */
export const TranscriptFile = z.object({
  ...file,
  name: file.name.meta({ description: 'The output’s name', example: 'words' }),
  filename: z.string().meta({ example: 'keynote-words.vtt' }),
  format: z.literal('transcript'),
  subtitles: Subtitles.meta({ example: 'vtt' }),
  language: TranscriptState.shape.language,
});
export type TranscriptFile = z.infer<typeof TranscriptFile>;

/** Any of a job's files. */
export const AnyOutputFile = z.discriminatedUnion('format', [OutputFile, WaveformFile, TranscriptFile]);
export type AnyOutputFile = z.infer<typeof AnyOutputFile>;

/** Stages of a message, in order; a status only moves forward (decisions B). */
export const messageStatuses = ['ERROR', 'PENDING', 'SERVER_ACK', 'DELIVERY_ACK', 'READ', 'PLAYED'] as const;
export const MessageStatus = z.enum(messageStatuses).meta({ example: 'PENDING' });
export type MessageStatus = z.infer<typeof MessageStatus>;

export const MessageKey = z.object({
  remoteJid: z.string().meta({ example: '12025550101@people.loopback' }),
  fromMe: z.boolean().meta({ example: true }),
  id: z.string().meta({ example: '7F0C2A9BE41D47839C4E2B7D1A6F0E35' }),
  participant: z.string().optional().meta({ description: 'In groups: JID of the author' }),
});
export type MessageKey = z.infer<typeof MessageKey>;

const voiceStatus = z.enum(['pending', 'sending', 'sent', 'failed', 'unknown']);

/** A note of a run. */
const VoicePartState = z.object({
  status: voiceStatus,
  key: MessageKey.nullable(),
  messageStatus: MessageStatus.nullable(),
  seconds: z.number().meta({ description: 'Its length', example: 171.24 }),
  fitsVoiceBubble: z.boolean(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
});

export const VoiceMessageState = z.object({
  status: voiceStatus,
  attempts: z.int().min(0),
  key: MessageKey.nullable().meta({ description: 'Of several notes: the first one’s' }),
  messageStatus: MessageStatus.nullable().meta({
    description: 'Of several notes: the least advanced one’s; null until all are sent',
  }),
  fitsVoiceBubble: z
    .boolean()
    .nullable()
    .meta({ description: 'Whether phones show it as a voice bubble (at most 512 KiB)' }),
  error: z.object({ code: z.string(), message: z.string() }).nullable().meta({
    description: 'Why it failed; while it is pending, why the last attempt failed',
  }),
  parts: z
    .array(VoicePartState)
    .optional()
    .meta({ description: 'The notes (with `split`), in order; if one fails, those after it are not sent' }),
});
export type VoiceMessageState = z.infer<typeof VoiceMessageState>;

export const WebhookState = z.object({
  status: z.enum(['pending', 'delivered', 'failed']),
  attempts: z.int().min(0),
  lastError: z.string().nullable(),
});
export type WebhookState = z.infer<typeof WebhookState>;

export const Job = z.object({
  jobId: JobId,
  status: JobStatus,
  progress: z
    .int()
    .min(0)
    .max(100)
    .meta({ description: 'Percent; never goes down, 100 only when completed' }),
  currentStep: ProcessingStep.nullable().meta({
    description: 'Null while queued; a failed job keeps its last step',
  }),
  estimatedTimeRemaining: z
    .number()
    .min(0)
    .optional()
    .meta({ description: 'Seconds; only while processing' }),
  inputFile: InputFile.nullable().meta({
    description:
      'Null until the source is analysed. If a job with an upload fails before that: the upload’s name, and its size while it is kept',
  }),
  outputFile: OutputFile.nullable().meta({
    description:
      'The first of outputFiles; null until completed, for a probe, and if only a transcript was requested',
  }),
  outputFiles: z.array(AnyOutputFile).meta({
    description:
      'The files, in the order of the outputs; empty until completed, and for a probe. Transcripts are added when they are ready',
  }),
  warnings: z.array(JobWarning).meta({ description: 'Empty if there are none' }),
  output: LoneOutputRequest.optional().meta({ description: 'If the request had it' }),
  outputs: AcceptedOutputs.optional().meta({ description: 'If the request had them instead of output' }),
  options: JobOptions,
  source: z.object({
    type: z.enum(['url', 'upload']),
    url: z.string().optional().meta({ description: 'Without its query, which may contain a secret' }),
    headers: z
      .array(z.string())
      .optional()
      .meta({ description: 'Names of the headers that are sent', example: ['Authorization'] }),
    file: z.string().optional(),
    name: z.string().optional().meta({
      description: 'The upload’s file name, from the start',
      example: 'talk.mp4',
    }),
  }),
  batchId: BatchId.nullable(),
  retryOf: JobId.nullable().meta({ description: 'The failed job that this one retries' }),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().nullable(),
  finishedAt: z.iso.datetime().nullable(),
  voiceMessage: VoiceMessageState.optional(),
  destination: DestinationState.optional().meta({
    description: 'If the job has one: pending until all its files are uploaded, failed if one of them failed',
  }),
  transcripts: z.array(TranscriptState).optional().meta({
    description:
      'Each transcript, in order; absent if none was requested. They follow after the job has completed',
  }),
  webhook: WebhookState.optional(),
  error: ErrorBody.optional(),
});
export type Job = z.infer<typeof Job>;
