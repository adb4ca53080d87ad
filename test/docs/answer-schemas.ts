/** What the answers that the pages show have to fit, by the name in the mark before them. */
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
} from '../../src/contract/answers.ts';
import { ErrorBody } from '../../src/contract/errors.ts';
import { SentMessage } from '../../src/contract/gateway.ts';
import { GatewayErrorAnswer } from '../../src/contract/gateway-errors.ts';
import { MessageUpdateEvent } from '../../src/contract/gateway-events.ts';
import { CreateInstanceAnswer } from '../../src/contract/gateway-instances.ts';
import { Job, OutputFile, VoiceMessageState, WebhookState } from '../../src/contract/job.ts';
import { JobOptions, JobRequest } from '../../src/contract/job-request.ts';

const envelope = (data: z.ZodType): z.ZodType =>
  z.strictObject({ success: z.literal(true), data, message: z.string().optional() });

const toldAbout = {
  jobId: z.string(),
  status: z.string(),
  timestamp: z.iso.datetime(),
  batchId: z.string().nullable(),
  options: JobOptions,
};

export const answerSchemas: Readonly<Record<string, z.ZodType>> = {
  AcceptedBatch: envelope(AcceptedBatch),
  AcceptedJob: envelope(AcceptedJob),
  BatchState: envelope(BatchState),
  CreateInstanceAnswer,
  DeliveryList: envelope(DeliveryList),
  Job: envelope(Job),
  JobList: envelope(JobList),
  JobRequest,
  MessageUpdateEvent: MessageUpdateEvent,
  SentMessage,
  UploadAnswer: envelope(UploadAnswer),
  Usage: envelope(Usage),
  VoiceMessageAccepted: envelope(VoiceMessageAccepted),
  WebhookSecret: envelope(WebhookSecret),
  WebhookTest: envelope(WebhookTest),
  announcements: z.object({ voiceMessage: VoiceMessageState, webhook: WebhookState }),
  error: z.strictObject({ success: z.literal(false), error: ErrorBody }),
  'gateway error': GatewayErrorAnswer,
  'job.completed': z.object({
    event: z.literal('job.completed'),
    ...toldAbout,
    downloadUrl: z.string().startsWith('/audio-extract/v1/download/'),
    outputFile: OutputFile,
  }),
  'job.failed': z.object({ event: z.literal('job.failed'), ...toldAbout, error: ErrorBody }),
  'voice.updated': z.object({
    event: z.literal('voice.updated'),
    jobId: z.string(),
    timestamp: z.iso.datetime(),
    voiceMessage: VoiceMessageState,
  }),
};
