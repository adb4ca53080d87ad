/** Webhook bodies for callers (audio-extraction.md "Events", decisions D). Times: ISO 8601, UTC. */
import { z } from 'zod';
import { DestinationState } from './destination.ts';
import { ErrorBody } from './errors.ts';
import { BatchId, JobId, OutputName } from './ids.ts';
import { AnyOutputFile, InputFile, OutputFile, TranscriptFile, VoiceMessageState } from './job.ts';
import { JobOptions } from './job-request.ts';
import { TranscriptState } from './transcripts.ts';

const aboutJob = {
  jobId: JobId,
  timestamp: z.iso.datetime().meta({ description: 'When the job ended; the same in every attempt' }),
  batchId: BatchId.nullable(),
  options: JobOptions,
};

export const JobCompletedEvent = z.object({
  event: z.literal('job.completed'),
  status: z.literal('completed'),
  ...aboutJob,
  downloadUrl: z.string().nullable().meta({
    description: 'Path of the first file, for use with a key; add ?name= for another. Null for a probe',
    example: '/audio-extract/v1/download/job_5f0c2a9be41d7783',
  }),
  inputFile: InputFile.optional().meta({ description: 'Only for a probe: the contents of the source' }),
  outputFile: OutputFile.nullable().meta({ description: 'Null for a probe' }),
  outputFiles: z.array(AnyOutputFile).meta({ description: 'The files, in the order of the outputs' }),
});

export const JobFailedEvent = z.object({
  event: z.literal('job.failed'),
  status: z.literal('failed'),
  ...aboutJob,
  error: ErrorBody,
});

/** A voice message became sent, failed or unknown. */
export const VoiceUpdatedEvent = z.object({
  event: z.literal('voice.updated'),
  jobId: JobId,
  timestamp: z.iso.datetime(),
  voiceMessage: VoiceMessageState,
});

/** A file was uploaded to its destination, or that failed. */
export const DestinationUpdatedEvent = z.object({
  event: z.literal('destination.updated'),
  jobId: JobId,
  timestamp: z.iso.datetime(),
  name: OutputName.meta({ description: 'The output’s name' }),
  destination: DestinationState,
});

/** A transcript became completed or failed. */
export const TranscriptUpdatedEvent = z.object({
  event: z.literal('transcript.updated'),
  jobId: JobId,
  timestamp: z.iso.datetime(),
  transcript: TranscriptState,
  outputFile: TranscriptFile.optional().meta({ description: 'If it completed' }),
});

/** The request of POST /v1/webhooks/test. */
export const WebhookTestRequest = z.strictObject({
  url: z
    .string()
    .max(2048)
    .meta({ description: 'https URL at a public address', example: 'https://example.com/hooks/audio' }),
});

/** What POST /v1/webhooks/test sends. */
export const WebhookTestEvent = z.object({
  event: z.literal('webhook.test'),
  timestamp: z.iso.datetime(),
});

export const WebhookEvent = z.discriminatedUnion('event', [
  JobCompletedEvent,
  JobFailedEvent,
  VoiceUpdatedEvent,
  DestinationUpdatedEvent,
  TranscriptUpdatedEvent,
  WebhookTestEvent,
]);
export type WebhookEvent = z.infer<typeof WebhookEvent>;
