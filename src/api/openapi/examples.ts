/** Examples that do not follow from single fields. A test checks each against its schema. */

import { BatchState, DeliveryList, VoiceMessageAccepted } from 'soundpost-contract/answers';
import { InputFile, Job, OutputFile, TranscriptFile } from 'soundpost-contract/job';
import {
  BatchRequest,
  JobRequest,
  UploadedJobRequest,
  VoiceMessageRequest,
} from 'soundpost-contract/job-request';
import {
  DestinationUpdatedEvent,
  JobCompletedEvent,
  JobFailedEvent,
  TranscriptUpdatedEvent,
  VoiceUpdatedEvent,
} from 'soundpost-contract/webhook-events';
import type { Examples } from 'soundpost-kit/http/openapi/description';
import { example, examplesOf as examplesAmong, sampleOf } from 'soundpost-kit/http/openapi/examples';
import { z } from 'zod';

const jobId = 'job_5f0c2a9be41d7783';
const secondJobId = 'job_90aa41c6fe0d2b18';
const batchId = 'batch_c04be1f2a93d5570';
const file = 'upl_3b9e60f4d2a81c57';
const webhook = 'https://example.com/hooks/audio';
const options = { filename: 'keynote', webhook, priority: 'normal' } as const;
const output = {
  format: 'mp3',
  quality: 'high',
  copy: 'auto',
  normalize: true,
  preserveMetadata: true,
} as const;

const inputFile = InputFile.parse(sampleOf(InputFile, new Map()));
const outputFile = OutputFile.parse(sampleOf(OutputFile, new Map()));
const outputFiles = [outputFile];
const transcriptFile = TranscriptFile.parse(sampleOf(TranscriptFile, new Map()));
const transcript = { name: 'words', status: 'completed', language: 'en', error: null } as const;

const processing: z.input<typeof Job> = {
  jobId,
  status: 'processing',
  progress: 65,
  currentStep: 'extracting_audio',
  estimatedTimeRemaining: 12.5,
  inputFile,
  outputFile: null,
  outputFiles: [],
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
  outputFiles,
  finishedAt: '2026-01-01T00:00:41.877Z',
  webhook: { status: 'delivered', attempts: 1, lastError: null },
};

const probed: z.input<typeof Job> = {
  ...completed,
  currentStep: 'analyzing_video',
  output: { format: 'probe' },
  outputFile: null,
  outputFiles: [],
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
      summary: 'Half a minute of an upload, without encoding',
      value: { source: { type: 'upload', file }, output: { format: 'm4a', start: 60, end: 90 } },
    },
    outputs: {
      summary: 'Two files, a waveform and a transcript of one fetch',
      value: {
        source: { type: 'url', url: 'https://example.com/keynote.mp4' },
        outputs: [
          { name: 'full', format: 'mp3', quality: 'high' },
          { name: 'preview', format: 'opus', end: 30 },
          { name: 'peaks', format: 'waveform', pixelsPerSecond: 10 },
          { name: 'words', format: 'transcript', subtitles: 'vtt', language: 'en' },
        ],
      },
    },
    probe: {
      summary: 'Probe a video, without an output',
      value: {
        source: { type: 'url', url: 'https://example.com/keynote.mp4' },
        output: { format: 'probe' },
      },
    },
    destination: {
      summary: 'The file is put to a presigned address',
      value: {
        source: { type: 'url', url: 'https://example.com/keynote.mp4' },
        output: { format: 'mp3' },
        destination: { url: 'https://bucket.s3.example.com/keynote.mp3?X-Amz-Signature=2b7f9a51' },
      },
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
    probe: { summary: 'A probe, completed', value: probed },
  }),
  example(DeliveryList, {
    second: {
      summary: 'Delivered at the second attempt',
      value: {
        deliveries: [
          {
            deliveryId: `${jobId}-webhook`,
            kind: 'webhook',
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
            body: {
              event: 'job.completed',
              jobId,
              status: 'completed',
              timestamp: '2026-01-01T00:00:42.000Z',
            },
          },
        ],
      },
    },
    voice: {
      summary: 'A voice message that the gateway had no time for yet',
      value: {
        deliveries: [
          {
            deliveryId: `${jobId}-voice`,
            kind: 'voice-message',
            status: 'pending',
            nextAttemptAt: '2026-01-01T00:00:51.200Z',
            attempts: [
              {
                at: '2026-01-01T00:00:42.900Z',
                httpStatus: 503,
                latencyMs: 31,
                error: 'the gateway answered 503',
              },
            ],
          },
        ],
      },
    },
  }),
  example(VoiceMessageAccepted, {
    pending: {
      summary: 'Pending',
      value: {
        jobId,
        voiceMessage: { ...voiceMessage, status: 'pending', attempts: 0, key: null, messageStatus: null },
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
        outputFiles,
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
  example(DestinationUpdatedEvent, {
    put: {
      summary: 'A file was put to its destination',
      value: {
        event: 'destination.updated',
        jobId,
        timestamp: '2026-01-01T00:00:43.551Z',
        name: 'audio',
        destination: {
          url: 'https://bucket.s3.example.com/keynote.mp3',
          status: 'completed',
          error: null,
        },
      },
    },
  }),
  example(TranscriptUpdatedEvent, {
    completed: {
      summary: 'A transcript that is there',
      value: {
        event: 'transcript.updated',
        jobId,
        timestamp: '2026-01-01T00:03:12.410Z',
        transcript,
        outputFile: transcriptFile,
      },
    },
  }),
  example(VoiceUpdatedEvent, {
    sent: {
      summary: 'A voice message was sent',
      value: { event: 'voice.updated', jobId, timestamp: '2026-01-01T00:00:44.120Z', voiceMessage },
    },
  }),
]);

/** Of a body, an answer's data, or a form's parts. Other answers have only those given here. */
export function examplesOf(schema: z.ZodType): Examples | undefined {
  const { success, data } = schema instanceof z.ZodObject ? schema.shape : {};
  if (success === undefined) {
    return examplesAmong(schema, bySchema);
  }
  return Object.fromEntries(
    Object.entries(examplesAmong(data, bySchema) ?? {}).map(([name, { value, ...about }]) => [
      name,
      { ...about, value: { success: true, data: value } },
    ]),
  );
}
