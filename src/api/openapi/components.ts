/** What the OpenAPI document names once and refers to: schemas, headers, ways to show who is calling. */
import type { ZodOpenApiComponentsObject } from 'zod-openapi';
import {
  AcceptedBatch,
  AcceptedJob,
  BatchState,
  Delivery,
  UploadAnswer,
  Usage,
} from '../../contract/answers.ts';
import { DeliveryAttempt } from '../../contract/deliveries.ts';
import { ErrorBody, ErrorCode } from '../../contract/errors.ts';
import { BatchId, JobId, UploadId } from '../../contract/ids.ts';
import {
  InputFile,
  Job,
  JobStatus,
  Loudness,
  MessageKey,
  MessageStatus,
  OutputFile,
  ProcessingStep,
  Track,
  VoiceMessageState,
  WebhookState,
} from '../../contract/job.ts';
import {
  BatchRequest,
  JobOptions,
  JobRequest,
  OutputRequest,
  Source,
  UploadedJobRequest,
  UploadSource,
  UrlSource,
  VoiceMessageRequest,
} from '../../contract/job-request.ts';
import { Scope } from '../../contract/scopes.ts';
import {
  JobCompletedEvent,
  JobFailedEvent,
  VoiceUpdatedEvent,
  WebhookTestEvent,
} from '../../contract/webhook-events.ts';

/** Where a schema means one thing to a request and another to an answer, the latter's name ends in `InForce`. */
export const namedSchemas = {
  JobRequest,
  UploadedJobRequest,
  BatchRequest,
  Source,
  UrlSource,
  UploadSource,
  OutputRequest,
  JobOptions,
  VoiceMessageRequest,
  Job,
  JobId,
  JobStatus,
  ProcessingStep,
  InputFile,
  Track,
  OutputFile,
  Loudness,
  VoiceMessageState,
  MessageKey,
  MessageStatus,
  WebhookState,
  AcceptedJob,
  AcceptedBatch,
  BatchState,
  BatchId,
  UploadAnswer,
  UploadId,
  Delivery,
  DeliveryAttempt,
  Usage,
  Scope,
  ErrorBody,
  ErrorCode,
  JobCompletedEvent,
  JobFailedEvent,
  VoiceUpdatedEvent,
  WebhookTestEvent,
} satisfies ZodOpenApiComponentsObject['schemas'];

export const securitySchemes = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'A key of the form `sp_<id>_<secret>`, with the scope that each operation names',
  },
  signedUrl: {
    type: 'apiKey',
    in: 'query',
    name: 'signature',
    description: 'The query of a signed address, such as outputFile.url carries it: expires and signature',
  },
} as const satisfies ZodOpenApiComponentsObject['securitySchemes'];

export const commonHeaders = {
  'X-Request-Id': {
    description: 'Names this request in the log of the service',
    schema: { type: 'string', format: 'uuid' },
  },
  'RateLimit-Policy': {
    description: 'The allowance that the request was taken from: requests (q) in a window of seconds (w)',
    schema: { type: 'string', examples: ['"read";q=3600;w=60'] },
  },
  RateLimit: {
    description: 'What is left of the allowance (r), and seconds until it is full again (t)',
    schema: { type: 'string', examples: ['"read";r=3599;t=60'] },
  },
  'Retry-After': {
    description: 'Seconds after which trying again pays',
    schema: { type: 'integer', minimum: 1 },
  },
} as const satisfies ZodOpenApiComponentsObject['headers'];
