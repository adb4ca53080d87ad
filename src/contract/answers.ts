/** The `data` of the answers that are no job (audio-extraction.md "Endpoints", decisions A4 to A6 and D). */
import { z } from 'zod';
import { DeliveryProgress } from './deliveries.ts';
import { BatchId, JobId, UploadId } from './ids.ts';
import { Job, JobStatus, ProcessingStep, VoiceMessageState } from './job.ts';
import { Scope } from './scopes.ts';

/** POST /v1/extract and retry. */
export const AcceptedJob = z.object({
  jobId: JobId,
  status: z.literal('queued'),
  estimatedTime: z
    .number()
    .min(0)
    .meta({ description: 'Seconds until the job will have ended, from measured throughput' }),
  statusUrl: z.string(),
});
export type AcceptedJob = z.infer<typeof AcceptedJob>;

/** POST /v1/batch. */
export const AcceptedBatch = z.object({
  batchId: BatchId,
  totalJobs: z.int().positive(),
  jobs: z.array(z.object({ jobId: JobId, status: z.literal('queued') })),
});

/** GET /v1/batch/{batchId}. */
export const BatchState = z.object({
  batchId: BatchId,
  totalJobs: z.int().positive(),
  counts: z.object({ queued: z.int(), processing: z.int(), completed: z.int(), failed: z.int() }),
  jobs: z.array(
    z.object({
      jobId: JobId,
      status: JobStatus,
      progress: z.int().min(0).max(100),
      currentStep: ProcessingStep.nullable(),
    }),
  ),
});

/** GET /v1/jobs. */
export const JobList = z.object({
  jobs: z.array(Job),
  nextCursor: z.string().nullable(),
});

/** POST /v1/uploads. */
export const UploadAnswer = z.object({
  file: UploadId,
  size: z.int().min(0),
  expiresAt: z.iso.datetime(),
  complete: z
    .boolean()
    .meta({ description: 'Whether all bytes are there; only a complete upload can be the source of a job' }),
});
export type UploadAnswer = z.infer<typeof UploadAnswer>;

/** GET /v1/jobs/{jobId}/deliveries. */
export const Delivery = z.object({
  deliveryId: DeliveryProgress.shape.deliveryId,
  event: z.enum(['job.completed', 'job.failed', 'voice.updated']),
  ...DeliveryProgress.omit({ deliveryId: true }).shape,
});
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryList = z.object({ deliveries: z.array(Delivery) });
export const WebhookSecret = z.object({ secret: z.string().regex(/^whsec_/) });
export const WebhookTest = z.object({ status: z.int(), latencyMs: z.int().min(0) });
export const VoiceMessageAccepted = z.object({ jobId: JobId, voiceMessage: VoiceMessageState });

/** GET /v1/usage. */
export const Usage = z.object({
  key: z.object({ id: z.string(), name: z.string(), scopes: z.array(Scope), instances: z.array(z.string()) }),
  submissions: z.object({ limit: z.int(), remaining: z.int(), resetSeconds: z.int() }),
  reads: z.object({ limit: z.int(), remaining: z.int(), resetSeconds: z.int() }),
  unfinishedJobs: z.object({ limit: z.int(), used: z.int() }),
});
