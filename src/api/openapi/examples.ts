/** Examples of the OpenAPI document, by the schema that each is one of; the compiler and a test hold them to it. */
import { z } from 'zod';
import {
  AcceptedBatch,
  AcceptedJob,
  BatchState,
  DeliveryList,
  JobList,
  UploadAnswer,
  Usage,
  VoiceMessageAccepted,
  WebhookSecret,
  WebhookTest,
} from '../../contract/answers.ts';
import { formatOf } from '../../contract/formats.ts';
import { Job } from '../../contract/job.ts';
import {
  BatchRequest,
  JobRequest,
  UploadedJobRequest,
  VoiceMessageRequest,
} from '../../contract/job-request.ts';
import {
  JobCompletedEvent,
  JobFailedEvent,
  VoiceUpdatedEvent,
  WebhookTestEvent,
  WebhookTestRequest,
} from '../../contract/webhook-events.ts';
import type { Examples } from '../../http/openapi/description.ts';

const jobId = 'job_5f0c2a9be41d7783';
const secondJobId = 'job_90aa41c6fe0d2b18';
const batchId = 'batch_c04be1f2a93d5570';
const file = 'upl_3b9e60f4d2a81c57';
const webhook = 'https://example.com/hooks/audio';
const statusUrl = `https://soundpost.example/v1/status/${jobId}`;
const options = { filename: 'keynote', webhook, priority: 'normal' } as const;
const output = {
  format: 'mp3',
  quality: 'high',
  copy: 'auto',
  normalize: true,
  preserveMetadata: true,
} as const;

const inputFile: z.input<typeof Job>['inputFile'] = {
  name: 'keynote.mp4',
  size: 734_003_200,
  duration: 2712.48,
  format: 'mov,mp4,m4a,3gp,3g2,mj2',
  tracks: [{ index: 0, codec: 'aac', language: 'en', channels: 2, sampleRate: 48_000, default: true }],
};

const outputFile: z.input<typeof JobCompletedEvent>['outputFile'] = {
  filename: 'keynote.mp3',
  url: `https://soundpost.example/v1/download/${jobId}?expires=1767312000&signature=2b7f9a51`,
  size: 65_100_211,
  duration: 2712.48,
  format: 'mp3',
  bitrate: '192k',
  codec: formatOf('mp3').codec,
  channels: 2,
  sampleRate: 48_000,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  expiresAt: '2026-01-02T00:00:00.000Z',
  copied: false,
  timeline: { startOffset: 0, filledSeconds: 0 },
  loudness: { inputLufs: -23.4, outputLufs: -16.1, truePeakDbtp: -1.2, gainDb: 7.3 },
};

const processing: z.input<typeof Job> = {
  jobId,
  status: 'processing',
  progress: 65,
  currentStep: 'extracting_audio',
  estimatedTimeRemaining: 12.5,
  inputFile,
  outputFile: null,
  warnings: [],
  output,
  options,
  source: { type: 'url', url: 'https://example.com/keynote.mp4' },
  batchId: null,
  retryOf: null,
  createdAt: '2026-01-01T00:00:00.000Z',
  startedAt: '2026-01-01T00:00:01.204Z',
  finishedAt: null,
};

const { estimatedTimeRemaining: _, ...ended } = processing;
const completed: z.input<typeof Job> = {
  ...ended,
  status: 'completed',
  progress: 100,
  currentStep: 'finalizing',
  outputFile,
  finishedAt: '2026-01-01T00:00:41.877Z',
  webhook: { status: 'delivered', attempts: 1, lastError: null },
};

const voiceMessage: z.input<typeof VoiceMessageAccepted>['voiceMessage'] = {
  status: 'sent',
  attempts: 1,
  key: { remoteJid: '12025550123@s.whatsapp.net', fromMe: true, id: '3EB0B430A7C1D9F2' },
  messageStatus: 'DELIVERY_ACK',
  fitsVoiceBubble: true,
  error: null,
};

const bySchema = new Map<z.ZodType, Examples>([
  example(JobRequest, {
    url: {
      summary: 'A video at a URL, its loudness brought to −16 LUFS',
      value: {
        source: { type: 'url', url: 'https://example.com/keynote.mp4' },
        output: { format: 'mp3', quality: 'high', normalize: true },
        options: { filename: 'keynote', webhook },
      },
    },
    upload: {
      summary: 'Half a minute of an upload, as it is',
      value: { source: { type: 'upload', file }, output: { format: 'm4a', start: 60, end: 90 } },
    },
    voice: {
      summary: 'The result as a voice message',
      value: {
        source: { type: 'url', url: 'https://example.com/greeting.mov' },
        output: { format: 'voice' },
        options: { voiceMessage: { instance: 'support', number: '+12025550123' } },
      },
    },
  }),
  example(UploadedJobRequest, {
    request: { summary: 'A job without its source', value: { output: { format: 'opus', bitrate: '96k' } } },
  }),
  example(BatchRequest, {
    two: {
      summary: 'Two jobs, one webhook',
      value: {
        jobs: [
          {
            source: { type: 'url', url: 'https://example.com/one.mp4' },
            output: { format: 'mp3', quality: 'medium' },
          },
          {
            source: { type: 'url', url: 'https://example.com/two.mkv' },
            output: { format: 'flac', track: 'fr' },
            options: { priority: 'low' },
          },
        ],
        webhook,
      },
    },
  }),
  example(VoiceMessageRequest, {
    number: {
      summary: 'To a phone number',
      value: { instance: 'support', number: '+12025550123', delay: 1200 },
    },
  }),
  example(AcceptedJob, {
    accepted: { summary: 'Queued', value: { jobId, status: 'queued', estimatedTime: 14.2, statusUrl } },
  }),
  example(AcceptedBatch, {
    accepted: {
      summary: 'Queued',
      value: {
        batchId,
        totalJobs: 2,
        jobs: [
          { jobId, status: 'queued' },
          { jobId: secondJobId, status: 'queued' },
        ],
      },
    },
  }),
  example(BatchState, {
    underway: {
      summary: 'One done, one to go',
      value: {
        batchId,
        totalJobs: 2,
        counts: { queued: 0, processing: 1, completed: 1, failed: 0 },
        jobs: [
          { jobId, status: 'completed', progress: 100, currentStep: 'finalizing' },
          { jobId: secondJobId, status: 'processing', progress: 31, currentStep: 'downloading_video' },
        ],
      },
    },
  }),
  example(Job, {
    processing: { summary: 'At work', value: processing },
    completed: { summary: 'Completed', value: completed },
  }),
  example(JobList, { page: { summary: 'The last page', value: { jobs: [completed], nextCursor: null } } }),
  example(UploadAnswer, {
    taken: {
      summary: 'Taken in',
      value: { file, size: 734_003_200, expiresAt: '2026-01-02T00:00:00.000Z', complete: true },
    },
  }),
  example(DeliveryList, {
    second: {
      summary: 'Delivered at the second try',
      value: {
        deliveries: [
          {
            deliveryId: `${jobId}-webhook`,
            event: 'job.completed',
            status: 'delivered',
            nextAttemptAt: null,
            attempts: [
              {
                at: '2026-01-01T00:00:42.010Z',
                httpStatus: 502,
                latencyMs: 180,
                error: 'the receiver answered 502',
              },
              { at: '2026-01-01T00:00:47.322Z', httpStatus: 204, latencyMs: 64, error: null },
            ],
          },
        ],
      },
    },
  }),
  example(WebhookSecret, {
    secret: { summary: 'A secret', value: { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } },
  }),
  example(WebhookTestRequest, { hook: { summary: 'A receiver', value: { url: webhook } } }),
  example(WebhookTest, { taken: { summary: 'Taken', value: { status: 204, latencyMs: 87 } } }),
  example(VoiceMessageAccepted, {
    pending: {
      summary: 'On its way',
      value: {
        jobId,
        voiceMessage: { ...voiceMessage, status: 'pending', attempts: 0, key: null, messageStatus: null },
      },
    },
  }),
  example(Usage, {
    usage: {
      summary: 'A key with every scope but priority',
      value: {
        key: {
          id: 'k3v9x0qa',
          name: 'newsroom',
          scopes: ['extract', 'read', 'download', 'webhooks', 'voice'],
          instances: ['support'],
        },
        submissions: { limit: 60, remaining: 58, resetSeconds: 41 },
        reads: { limit: 3600, remaining: 3590, resetSeconds: 41 },
        unfinishedJobs: { limit: 100, used: 2 },
      },
    },
  }),
  example(JobCompletedEvent, {
    completed: {
      summary: 'A job completed',
      value: {
        event: 'job.completed',
        jobId,
        status: 'completed',
        timestamp: '2026-01-01T00:00:41.877Z',
        downloadUrl: `/audio-extract/v1/download/${jobId}`,
        outputFile,
        batchId: null,
        options,
      },
    },
  }),
  example(JobFailedEvent, {
    failed: {
      summary: 'A job failed',
      value: {
        event: 'job.failed',
        jobId,
        status: 'failed',
        timestamp: '2026-01-01T00:00:09.310Z',
        error: {
          code: 'EXTRACTION_FAILED',
          message: 'the audio could not be extracted',
          details: 'no audio stream',
        },
        batchId,
        options,
      },
    },
  }),
  example(VoiceUpdatedEvent, {
    sent: {
      summary: 'A voice message was sent',
      value: { event: 'voice.updated', jobId, timestamp: '2026-01-01T00:00:44.120Z', voiceMessage },
    },
  }),
  example(WebhookTestEvent, {
    test: { summary: 'A test', value: { event: 'webhook.test', timestamp: '2026-01-01T00:00:00.000Z' } },
  }),
]);

function example<Schema extends z.ZodType>(
  schema: Schema,
  examples: Readonly<Record<string, { summary: string; value: z.input<Schema> }>>,
): [Schema, Examples] {
  return [schema, examples];
}

/** Of a body; of an answer's envelope by its data, and of a form by its parts, the file's bytes standing in for themselves. */
export function examplesOf(schema: z.ZodType): Examples | undefined {
  const parts = schema instanceof z.ZodObject ? Object.entries<z.ZodType>(schema.shape) : [];
  if (bySchema.has(schema) || parts.length === 0) {
    return bySchema.get(schema);
  }
  const { success, data } = Object.fromEntries(parts);
  if (success && data) {
    const examples = Object.entries(bySchema.get(data) ?? {});
    return Object.fromEntries(
      examples.map(([name, { value, ...about }]) => [
        name,
        { ...about, value: { success: true, data: value } },
      ]),
    );
  }
  const isForm = parts.some(([, part]) => part instanceof z.ZodFile);
  const value = Object.fromEntries(parts.map(([name, part]) => [name, partExample(part)]));
  return isForm ? { form: { summary: 'A form with a file', value } } : undefined;
}

function partExample(part: z.ZodType): unknown {
  const [first] = Object.values(bySchema.get(part) ?? {});
  return first?.value ?? '<the bytes of the file>';
}
