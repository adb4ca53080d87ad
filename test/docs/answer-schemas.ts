/** What the answers that the pages show have to fit, by the name in the mark before them. */

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
} from 'soundpost-contract/answers';
import { DestinationRequest } from 'soundpost-contract/destination';
import { ErrorBody } from 'soundpost-contract/errors';
import { SentMessage } from 'soundpost-contract/gateway';
import { GatewayErrorAnswer } from 'soundpost-contract/gateway-errors';
import { CreateInstanceAnswer } from 'soundpost-contract/gateway-instances';
import { InputFile, Job, VoiceMessageState, WebhookState } from 'soundpost-contract/job';
import { JobRequest } from 'soundpost-contract/job-request';
import {
  DestinationUpdatedEvent,
  JobCompletedEvent,
  JobFailedEvent,
  VoiceUpdatedEvent,
} from 'soundpost-contract/webhook-events';
import { z } from 'zod';

const envelope = (data: z.ZodType): z.ZodType =>
  z.strictObject({ success: z.literal(true), data, message: z.string().optional() });

export const answerSchemas: Readonly<Record<string, z.ZodType>> = {
  AcceptedBatch: envelope(AcceptedBatch),
  AcceptedJob: envelope(AcceptedJob),
  BatchState: envelope(BatchState),
  CreateInstanceAnswer,
  DeliveryList: envelope(DeliveryList),
  DestinationRequest,
  InputFile,
  Job: envelope(Job),
  JobList: envelope(JobList),
  JobRequest,
  'MCP configuration': z.strictObject({
    mcpServers: z.record(
      z.string(),
      z.union([
        z.strictObject({
          command: z.string(),
          args: z.array(z.string()),
          env: z.record(z.string(), z.string()),
        }),
        z.strictObject({ type: z.literal('http'), url: z.url(), headers: z.record(z.string(), z.string()) }),
      ]),
    ),
  }),
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
