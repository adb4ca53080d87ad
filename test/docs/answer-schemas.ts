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
import { DestinationRequest } from '../../src/contract/destination.ts';
import { ErrorBody } from '../../src/contract/errors.ts';
import { SentMessage } from '../../src/contract/gateway.ts';
import { GatewayErrorAnswer } from '../../src/contract/gateway-errors.ts';
import { CreateInstanceAnswer } from '../../src/contract/gateway-instances.ts';
import { Job, VoiceMessageState, WebhookState } from '../../src/contract/job.ts';
import { JobRequest } from '../../src/contract/job-request.ts';
import {
  DestinationUpdatedEvent,
  JobCompletedEvent,
  JobFailedEvent,
  VoiceUpdatedEvent,
} from '../../src/contract/webhook-events.ts';

const envelope = (data: z.ZodType): z.ZodType =>
  z.strictObject({ success: z.literal(true), data, message: z.string().optional() });

export const answerSchemas: Readonly<Record<string, z.ZodType>> = {
  AcceptedBatch: envelope(AcceptedBatch),
  AcceptedJob: envelope(AcceptedJob),
  BatchState: envelope(BatchState),
  CreateInstanceAnswer,
  DeliveryList: envelope(DeliveryList),
  DestinationRequest,
  Job: envelope(Job),
  JobList: envelope(JobList),
  JobRequest,
  SentMessage,
  UploadAnswer: envelope(UploadAnswer),
  Usage: envelope(Usage),
  VoiceMessageAccepted: envelope(VoiceMessageAccepted),
  WebhookSecret: envelope(WebhookSecret),
  WebhookTest: envelope(WebhookTest),
  // Without the defaults, which an answer has.
  'a job as it is sent': z.custom((value) => JobRequest.safeParse(value).success),
  announcements: z.object({ voiceMessage: VoiceMessageState, webhook: WebhookState }),
  error: z.strictObject({ success: z.literal(false), error: ErrorBody }),
  'destination.updated': DestinationUpdatedEvent,
  'gateway error': GatewayErrorAnswer,
  'job.completed': JobCompletedEvent,
  'job.failed': JobFailedEvent,
  'voice.updated': VoiceUpdatedEvent,
};
