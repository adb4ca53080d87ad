/** The OpenAPI document: everything beside the routes and the contract's schemas. */

import {
  AcceptedBatch,
  AcceptedJob,
  BatchState,
  BulkRequest,
  BulkResults,
  Delivery,
  DeliveryList,
  EndpointDeliveries,
  EndpointList,
  JobList,
  UploadAnswer,
  Usage,
  UsageDay,
  VoiceMessageAccepted,
} from 'soundpost-contract/answers';
import {
  ConsoleSessionState,
  KeyState,
  KeyWithSecret,
  NewKeyRequest,
  Scope,
} from 'soundpost-contract/api-keys';
import { DeliveryAttempt } from 'soundpost-contract/deliveries';
import {
  DestinationReplayRequest,
  DestinationRequest,
  DestinationState,
} from 'soundpost-contract/destination';
import { ErrorBody, ErrorCode, errorCatalogue } from 'soundpost-contract/errors';
import { BatchId, JobId, OutputName, TenantId, UploadId } from 'soundpost-contract/ids';
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
  TranscriptFile,
  VoiceMessageState,
  Waveform,
  WaveformFile,
  WebhookState,
} from 'soundpost-contract/job';
import {
  BatchJobRequest,
  BatchRequest,
  DataSource,
  JobOptions,
  JobRequest,
  Source,
  UploadedJobRequest,
  UploadSource,
  UrlSource,
  VoiceMessageRequest,
} from 'soundpost-contract/job-request';
import {
  NamedOutputRequest,
  OutputRequest,
  ProbeRequest,
  TranscriptionRequest,
  TranscriptRequest,
  WaveformRequest,
} from 'soundpost-contract/output-request';
import { SignedEventHeaders } from 'soundpost-contract/request-headers';
import { TranscriptState } from 'soundpost-contract/transcripts';
import {
  DestinationUpdatedEvent,
  JobCompletedEvent,
  JobFailedEvent,
  TranscriptUpdatedEvent,
  VoiceUpdatedEvent,
  WebhookTestEvent,
} from 'soundpost-contract/webhook-events';
import { errorTable } from 'soundpost-kit/http/api-reference';
import type { ErrorDocs, EventDocs, Operation, ServerDocs } from 'soundpost-kit/http/openapi/description';
import { assemble } from 'soundpost-kit/http/openapi/document';
import { z } from 'zod';
import type { Access, Route } from '../route.ts';
import { examplesOf } from './examples.ts';

const DESCRIPTION = `Soundpost extracts the audio from a video, given as a URL or an upload. It can call your webhook when the job ends, and send the result to a chat as a voice message.

Jobs are asynchronous: a submission returns 202 with a job id. Watch the job's events, poll its status every 2 to 5 seconds, or use a webhook. Then download the file within 24 hours.

JSON answers are envelopes: \`success\` and \`data\`, or \`success: false\` and \`error\` with a \`code\`, a \`message\` and sometimes \`details\`. Check \`success\` first. Send an \`Idempotency-Key\`, so that a retry never makes a second job.

Sizes are bytes, durations seconds, times ISO 8601 in UTC. Every answer has an \`X-Request-Id\`; include it when you report a problem.

${errorTable(errorCatalogue)}`;

const TAGS = [
  { name: 'Jobs', description: 'Submit, follow, cancel and retry jobs, each for one video.' },
  { name: 'Batches', description: 'Up to ten jobs in one request.' },
  {
    name: 'Transcription',
    description: "For OpenAI's clients: audio or video in, text out, in one request.",
  },
  { name: 'Uploads', description: 'Upload videos that have no URL, in one piece or resumable (tus 1.0).' },
  { name: 'Downloads', description: 'Download finished files.' },
  { name: 'Webhooks', description: 'Secrets, deliveries, replays and tests of webhooks.' },
  { name: 'Keys', description: 'Create, rotate and revoke API keys.' },
  { name: 'Service', description: 'The service itself.' },
];

/** Names in the document; our client's types use the same (script/client-declarations.ts). */
export const schemas = {
  JobOptions,
  JobRequest,
  UploadedJobRequest,
  BatchRequest,
  BatchJobRequest,
  Source,
  UrlSource,
  UploadSource,
  DataSource,
  OutputRequest,
  ProbeRequest,
  NamedOutputRequest,
  WaveformRequest,
  TranscriptRequest,
  TranscriptionRequest,
  VoiceMessageRequest,
  DestinationRequest,
  DestinationReplayRequest,
  Job,
  JobId,
  JobStatus,
  ProcessingStep,
  InputFile,
  Track,
  OutputFile,
  WaveformFile,
  TranscriptFile,
  TranscriptState,
  Waveform,
  Loudness,
  VoiceMessageState,
  DestinationState,
  MessageKey,
  MessageStatus,
  WebhookState,
  AcceptedJob,
  AcceptedBatch,
  BatchState,
  BatchId,
  JobList,
  BulkRequest,
  BulkResults,
  DeliveryList,
  EndpointDeliveries,
  EndpointList,
  VoiceMessageAccepted,
  UploadAnswer,
  UploadId,
  Delivery,
  DeliveryAttempt,
  Usage,
  UsageDay,
  NewKeyRequest,
  KeyState,
  KeyWithSecret,
  ConsoleSessionState,
  Scope,
  ErrorBody,
  ErrorCode,
  JobCompletedEvent,
  JobFailedEvent,
  TranscriptUpdatedEvent,
  VoiceUpdatedEvent,
  DestinationUpdatedEvent,
  WebhookTestEvent,
};

const pathParameters = {
  jobId: JobId,
  batchId: BatchId,
  uploadId: UploadId,
  keyId: TenantId.meta({ example: 'k3v9x0qa' }),
  deliveryId: z.string().meta({
    description: 'Id from the list of deliveries',
    example: 'job_5f0c2a9be41d7783-webhook',
  }),
  name: OutputName.meta({ description: 'The output’s name; audio for output', example: 'audio' }),
};

const securitySchemes: ServerDocs<ErrorCode>['securitySchemes'] = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'A key of the form `sp_<id>_<secret>`, with the scope that each operation names',
  },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The same key, for OpenAI’s clients',
  },
  signedUrl: {
    type: 'apiKey',
    in: 'query',
    name: 'signature',
    description: 'The query of a signed address such as outputFile.url: expires and signature',
  },
};

const headers: ServerDocs<ErrorCode>['headers'] = {
  'X-Request-Id': {
    description: 'Id of this request in the service’s log',
    schema: { type: 'string', format: 'uuid' },
  },
  'RateLimit-Policy': {
    description: 'The rate limit of this request: requests (q) in a window of seconds (w)',
    schema: { type: 'string', examples: ['"read";q=3600;w=60'] },
  },
  RateLimit: {
    description: 'Requests left (r), and seconds until the limit resets (t)',
    schema: { type: 'string', examples: ['"read";r=3599;t=60'] },
  },
  'Retry-After': {
    description: 'Seconds to wait before a retry',
    schema: { type: 'integer', minimum: 1 },
  },
};

const events: Readonly<Record<string, EventDocs>> = {
  'job.completed': event('jobCompleted', 'A job has completed', JobCompletedEvent),
  'job.failed': event('jobFailed', 'A job has failed or was cancelled', JobFailedEvent),
  'transcript.updated': event(
    'transcriptUpdated',
    'A transcript became completed or failed',
    TranscriptUpdatedEvent,
  ),
  'voice.updated': event('voiceUpdated', 'A voice message became sent, failed or unknown', VoiceUpdatedEvent),
  'destination.updated': event(
    'destinationUpdated',
    'A file was uploaded to its destination, or that failed',
    DestinationUpdatedEvent,
  ),
  'webhook.test': event('webhookTest', 'A test of this webhook', WebhookTestEvent),
};

function event(operationId: string, summary: string, schema: z.ZodType): EventDocs {
  return {
    operationId,
    summary,
    description:
      'Signed with the key’s secret (Standard Webhooks 1.0.0). Anything but 2xx within 15 seconds is retried; 410 stops the retries.',
    schema,
    answers: { '2XX': { description: 'Accepted' } },
  };
}

const errors: ErrorDocs<ErrorCode> = {
  catalogue: errorCatalogue,
  waiting: ['RATE_LIMITED', 'QUEUE_FULL', 'SERVICE_UNAVAILABLE', 'JOB_NOT_COMPLETED'],
  schema: (codes) =>
    z.object({ success: z.literal(false), error: ErrorBody.extend({ code: z.enum(codes) }) }),
  example: (code) => ({ success: false, error: { code, message: errorCatalogue[code].meaning } }),
};

/** @param publicUrl absolute base of the service, without a slash at the end */
export function openApiDocument(
  routes: readonly Route[],
  publicUrl: string,
): ReturnType<typeof assemble<ErrorCode>> {
  const server = { url: publicUrl };
  return assemble({
    openapi: '3.1.1',
    info: {
      title: 'Soundpost',
      version: '1.0.0',
      summary: 'Audio from videos',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [
      server,
      { url: `${publicUrl}/audio-extract`, description: 'The same under the prefix that webhooks use' },
    ],
    // Only /v1 answers under the prefix as well.
    serversOf: (path) => (path.startsWith('/v1/') ? undefined : [server]),
    tags: TAGS,
    operations: routes.map(operationOf),
    errors,
    events,
    eventHeaders: SignedEventHeaders,
    schemas,
    examples: examplesOf,
    pathParameters,
    headers,
    securitySchemes,
  });
}

function operationOf({ method, path, access, docs, errors }: Route): Operation<ErrorCode> {
  const isKeyed = access.by !== 'public';
  const description = [...(docs.description === undefined ? [] : [docs.description]), needs(access)];
  // Errors of any request with a key, beside those that its route names.
  const always = isKeyed
    ? (['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED', 'SERVICE_UNAVAILABLE'] as const)
    : [];
  const answers = Object.entries(docs.answers).map(([status, { data, content, ...answer }]) => [
    status,
    { ...answer, content: data ? { ...content, 'application/json': envelopeOf(data) } : content },
  ]);
  return {
    method,
    path,
    docs: {
      ...docs,
      description: description.join('\n\n'),
      answers: Object.fromEntries(answers),
      errors: [...docs.errors, ...always, 'INTERNAL_ERROR'],
    },
    security: securityOf(access),
    errors: errors?.docs,
    answerHeaders: ['X-Request-Id', ...(isKeyed ? ['RateLimit-Policy', 'RateLimit'] : [])],
  };
}

/** Viewers do not show an API key's roles. */
function needs(access: Access): string {
  return access.by === 'public' ? 'Needs no key.' : `Needs a key with the scope \`${access.scope}\`.`;
}

/** OpenAPI 3.1 allows roles in a requirement, here our scopes. */
function securityOf(access: Access): Record<string, string[]>[] {
  switch (access.by) {
    case 'public':
      return [];
    case 'key':
      return [{ apiKey: [access.scope] }, ...(access.bearer ? [{ bearer: [access.scope] }] : [])];
    case 'signature':
      return [{ apiKey: [access.scope] }, { signedUrl: [] }];
  }
}

function envelopeOf(data: z.ZodType): z.ZodObject {
  return z.object({
    success: z.literal(true),
    data,
    message: z
      .string()
      .optional()
      .meta({ description: 'For people; a batch says how many jobs were queued' }),
  });
}
