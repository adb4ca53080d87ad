/** The bodies of the webhooks that callers receive (audio-extraction.md "Events", decisions D). Times are ISO 8601 in UTC. */
import { z } from 'zod';
import { ErrorBody } from './errors.ts';
import { BatchId, JobId } from './ids.ts';
import { OutputFile, VoiceMessageState } from './job.ts';
import { JobOptions } from './job-request.ts';

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
  downloadUrl: z.string().meta({
    description: 'Path of the file, for a key',
    example: '/audio-extract/v1/download/job_5f0c2a9be41d7783',
  }),
  outputFile: OutputFile,
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

/** What POST /v1/webhooks/test is asked with. */
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
  WebhookTestEvent,
]);
export type WebhookEvent = z.infer<typeof WebhookEvent>;
