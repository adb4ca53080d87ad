/** The `data` of answers besides jobs (audio-extraction.md "Endpoints", decisions A4 to A6, D). */
import { z } from 'zod';
import { Scope } from './api-keys.ts';
import { DeliveryProgress } from './deliveries.ts';
import { ErrorBody } from './errors.ts';
import { BatchId, JobId, OutputName, UploadId } from './ids.ts';
import { Job, JobStatus, ProcessingStep, VoiceMessageState } from './job.ts';

/** POST /v1/extract and retry. */
export const AcceptedJob = z.object({
  jobId: JobId,
  status: z.literal('queued'),
  estimatedTime: z
    .number()
    .min(0)
    .meta({ description: 'Seconds until the job ends, estimated from recent jobs', example: 14.2 }),
  statusUrl: z.string().meta({ example: 'https://soundpost.example/v1/status/job_5f0c2a9be41d7783' }),
});
export type AcceptedJob = z.infer<typeof AcceptedJob>;

/** POST /v1/batch. */
export const AcceptedBatch = z.object({
  batchId: BatchId,
  totalJobs: z.int().positive().meta({ example: 1 }),
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
  nextCursor: z.string().nullable().meta({ example: null }),
  total: z.int().min(0).optional().meta({
    description: 'Jobs on all pages; not with a search. May include a job that has just expired',
    example: 1,
  }),
  searchedUntil: z.iso.datetime().nullable().optional().meta({
    description: 'With a search: all jobs submitted after this time were searched; null if all jobs were',
  }),
});

/** POST /v1/jobs/bulk. */
export const BulkRequest = z.strictObject({
  action: z.enum(['retry', 'delete']).meta({
    description:
      'retry: runs failed jobs again as new ones. delete: cancels unfinished jobs and erases the files of finished ones',
    example: 'retry',
  }),
  jobs: z
    .array(JobId)
    .min(1)
    .max(100)
    .refine((ids) => new Set(ids).size === ids.length, 'must not name a job twice'),
});
export const BulkResults = z.object({
  results: z.array(
    z.object({
      jobId: JobId,
      ok: z.boolean().meta({ example: true }),
      newJobId: JobId.optional().meta({
        description: 'The new job of a retry',
        example: 'job_90aa41c6fe0d2b18',
      }),
      error: ErrorBody.optional().meta({ description: 'Why this job was not changed' }),
    }),
  ),
});

/** POST /v1/uploads. */
export const UploadAnswer = z.object({
  file: UploadId,
  size: z.int().min(0).meta({ example: 734_003_200 }),
  expiresAt: z.iso.datetime().meta({ example: '2026-01-02T00:00:00.000Z' }),
  complete: z.boolean().meta({
    description: 'Whether all bytes have arrived; only a complete upload can be a source',
    example: true,
  }),
});
export type UploadAnswer = z.infer<typeof UploadAnswer>;

const { deliveryId, endpoint, ...progress } = DeliveryProgress.shape;

export const WebhookDelivery = z.object({
  deliveryId,
  kind: z.literal('webhook'),
  event: z.enum([
    'job.completed',
    'job.failed',
    'voice.updated',
    'transcript.updated',
    'destination.updated',
  ]),
  ...progress,
  endpoint,
  body: z.looseObject({ event: z.string() }).meta({
    description: 'What every attempt posts; of the receiver’s answers only status and time are kept',
    example: { event: 'job.failed', jobId: 'job_5f0c2a9be41d7783' },
  }),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

const OtherDelivery = z.object({
  deliveryId,
  kind: z.enum(['voice-message', 'transcript', 'destination']),
  name: OutputName.optional().meta({
    description: 'The output’s name, for transcripts and destinations',
  }),
  ...progress,
});

/** GET /v1/jobs/{jobId}/deliveries. */
export const Delivery = z.discriminatedUnion('kind', [WebhookDelivery, OtherDelivery]);
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryList = z.object({ deliveries: z.array(Delivery) });

/** GET /v1/endpoints. */
export const EndpointList = z.object({
  endpoints: z.array(
    z.object({
      endpoint: z.string().meta({
        description: 'Scheme, host, port and path, never a query',
        example: 'https://example.com/hooks/audio',
      }),
      state: z.enum(['ok', 'failing']),
      failures: z.int().min(0).meta({ description: 'Failed attempts in a row', example: 0 }),
      failedSince: z.iso.datetime().nullable().meta({ example: null }),
      lastAnswer: z.int().nullable().meta({
        description: 'Status of the last answer; null if there was none',
        example: 204,
      }),
      lastAt: z.iso.datetime().meta({ description: 'Of the last attempt' }),
      pending: z.int().min(0).meta({ description: 'Deliveries still to be sent', example: 0 }),
    }),
  ),
  nextCursor: z.string().nullable().meta({ example: null }),
});
/** GET /v1/deliveries. */
export const EndpointDeliveries = z.object({
  deliveries: z.array(
    z.object({
      jobId: JobId,
      event: WebhookDelivery.shape.event,
      createdAt: z.iso.datetime().meta({ description: 'When the event happened' }),
      deliveryId,
      ...progress,
    }),
  ),
  nextCursor: z.string().nullable().meta({ example: null }),
});
/** POST /v1/deliveries/resend. */
export const ResendRequest = z.strictObject({
  since: z.iso.datetime({ offset: true }).meta({
    description: 'Deliveries that failed at this time or later are resent',
    example: '2026-11-23T14:00:00Z',
  }),
  endpoint: z
    .url({ protocol: /^https?$/, error: 'must be an absolute http or https URL' })
    .max(2048)
    .optional()
    .meta({
      description: 'Only deliveries to this endpoint; its query is ignored',
      example: 'https://example.com/hooks/audio',
    }),
});
export const Resent = z.object({
  resent: z.int().min(0).meta({ description: 'How many are being resent' }),
});
export const WebhookSecret = z.object({
  secret: z
    .string()
    .regex(/^whsec_/)
    .meta({ example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }),
  replacedUntil: z.iso.datetime().optional().meta({
    description: 'Until when the previous secret also signs; only while it does',
  }),
});
export const WebhookTest = z.object({
  status: z.int().meta({ example: 204 }),
  latencyMs: z.int().min(0).meta({ example: 87 }),
});
export const VoiceMessageAccepted = z.object({ jobId: JobId, voiceMessage: VoiceMessageState });

/** What is left of a window's allowance, and in how many seconds it is whole again. */
const Allowance = z.object({ limit: z.number(), remaining: z.int(), resetSeconds: z.int() });

/** How many there may be at a time, how many there are, and how many more there may be. */
const Budget = z.object({ limit: z.int().min(0), used: z.int().min(0), remaining: z.int().min(0) });

export const UsageDay = z.object({
  day: z.iso.date().meta({ description: 'Day in UTC on which the jobs ended', example: '2026-01-01' }),
  jobs: z.int().min(0).meta({ description: 'Jobs that ended', example: 42 }),
  failed: z.int().min(0).meta({ description: 'Failed ones, including cancelled', example: 2 }),
  audioSeconds: z.number().min(0).meta({
    description: 'For each completed job, the length of its first file, or of its source if it has no file',
    example: 25_310.4,
  }),
  bytesIn: z.int().min(0).meta({
    description: 'Sizes of the sources; for a failed job, if known',
    example: 7_340_032_000,
  }),
  bytesOut: z.int().min(0).meta({ description: 'Sizes of the files made', example: 812_004_112 }),
  processorSeconds: z.number().min(0).meta({ example: 913.6 }),
});
export type UsageDay = z.infer<typeof UsageDay>;

/** GET /v1/usage. */
export const Usage = z.object({
  key: z.object({
    id: z.string().meta({ example: 'k3v9x0qa' }),
    name: z.string().meta({ example: 'newsroom' }),
    scopes: z.array(Scope).meta({ example: ['extract', 'read', 'download', 'webhooks', 'voice'] }),
    instances: z.array(z.string()).meta({ example: ['support'] }),
  }),
  submissions: Allowance.meta({ example: { limit: 60, remaining: 58, resetSeconds: 41 } }),
  reads: Allowance.meta({ example: { limit: 3600, remaining: 3590, resetSeconds: 41 } }),
  recordBytes: Allowance.meta({
    description: 'Bytes of records of submitted jobs per minute',
    example: { limit: 16_777_216, remaining: 16_775_380, resetSeconds: 41 },
  }),
  transcriptSeconds: Allowance.nullable().meta({
    description: 'Seconds of audio to transcribe per day; null: no limit',
    example: { limit: 36_000, remaining: 34_170, resetSeconds: 80_412 },
  }),
  processorSeconds: Allowance.nullable().meta({
    description: 'Processor seconds of its jobs per minute; null: no limit',
    example: null,
  }),
  unfinishedJobs: Budget.meta({ example: { limit: 100, used: 2, remaining: 98 } }),
  uploads: Budget.meta({
    description: 'Unfinished or kept uploads',
    example: { limit: 200, used: 3, remaining: 197 },
  }),
  uploadBytes: Budget.meta({
    description: 'Bytes of these uploads, as announced',
    example: { limit: 53_687_091_200, used: 73_400_320, remaining: 53_613_690_880 },
  }),
  eventStreams: Budget.meta({
    description: 'Open event streams',
    example: { limit: 50, used: 1, remaining: 49 },
  }),
  days: z.array(UsageDay).optional().meta({
    description: 'With `from` or `to`: each day of the span, oldest first',
  }),
  streamRequests: z
    .object({
      perHost: z.object({
        atOnce: z.int().meta({ example: 8 }),
        perSecond: z.int().meta({ example: 40 }),
      }),
      perJob: z.object({
        requests: z.int().meta({ description: 'Besides segments', example: 2000 }),
        redirects: z.int().meta({ example: 512 }),
      }),
      hosts: z.array(z.object({ host: z.string(), atOnceLeft: z.int() })).meta({
        description: 'Hosts that its jobs use now, the latest 20',
        example: [{ host: 'cdn.example', atOnceLeft: 5 }],
      }),
    })
    .meta({ description: 'Limits on the requests that streams cause at other servers' }),
});
