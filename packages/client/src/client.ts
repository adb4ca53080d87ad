/** The operations of the service, for programs in Node and in browsers. */

import type {
  AcceptedBatch,
  AcceptedJob,
  BatchState,
  BulkRequest,
  BulkResults,
  DeliveryList,
  EndpointDeliveries,
  EndpointList,
  JobList,
  Resent,
  UploadAnswer,
  Usage,
  VoiceMessageAccepted,
  WebhookSecret,
  WebhookTest,
} from 'soundpost-contract/answers';
import type {
  ConsoleSessionState,
  KeyList,
  KeyState,
  KeyWithSecret,
  NewKeyRequest,
} from 'soundpost-contract/api-keys';
import type { DestinationReplayRequest } from 'soundpost-contract/destination';
import type { Job, JobStatus, OutputFile } from 'soundpost-contract/job';
import type {
  BatchRequest,
  JobRequest,
  UploadedJobRequest,
  VoiceMessageRequest,
} from 'soundpost-contract/job-request';
import type { z } from 'zod';
import { type ClientOptions, Connection } from './connection.ts';
import { type EventsOptions, watchJobs } from './events.ts';
import { formOf, type SentFile } from './file.ts';
import { type CompletedJob, type WaitOptions, waitForEnd } from './wait.ts';

/** A job with its file. */
export type FileJobRequest = z.input<typeof UploadedJobRequest> & {
  readonly file: SentFile;
  /** Default: the file's own name. */
  readonly filename?: string;
};

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface SubmitOptions extends CallOptions {
  /** Repeating a request with the same key within 24 hours submits once. Default: a new key. */
  readonly idempotencyKey?: string;
}

export interface ListOptions extends CallOptions {
  readonly status?: JobStatus;
  /** Only jobs whose id, source, file name or chosen name contains this. */
  readonly q?: string;
  /** Only jobs submitted at or after this time or day (ISO 8601). */
  readonly from?: string;
  /** Only jobs submitted at or before this time or day (ISO 8601). */
  readonly to?: string;
  /** Only jobs of this batch. */
  readonly batch?: string;
  /** 1 … 100. Default 20. */
  readonly limit?: number;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string;
}

export interface EndpointListOptions extends CallOptions {
  /** 1 … 100. Default 20. */
  readonly limit?: number;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string;
}

export interface EndpointDeliveriesOptions extends EndpointListOptions {
  /** Only those in this state. */
  readonly status?: z.infer<typeof EndpointDeliveries>['deliveries'][number]['status'];
}

export interface UsageOptions extends CallOptions {
  /** First day (ISO 8601, UTC), at most 89 days ago. */
  readonly from?: string;
  /** Last day. Default today. */
  readonly to?: string;
}

export interface ResendOptions extends CallOptions {
  /** Only deliveries to this endpoint; its query does not count. */
  readonly endpoint?: string;
}

export interface KeyListOptions extends CallOptions {
  /** 1 … 100. Default 100. */
  readonly limit?: number;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string;
}

export interface DownloadOptions extends CallOptions {
  /** `voice`: the voice note of a voice message. Default `output`. */
  readonly rendition?: 'output' | 'voice';
  /** Name of the output to download; default the first. */
  readonly name?: string | undefined;
  /** First and last byte; default: to the end. */
  readonly range?: { readonly start: number; readonly end?: number };
}

export interface Uploads {
  /** Stores a file as the source for any number of jobs, until it expires. */
  create(file: SentFile, options?: CallOptions & { readonly filename?: string }): Promise<UploadAnswer>;
  /**
   * Starts a tus 1.0 upload, to be sent in pieces. Any tus client can resume it at
   * `/v1/uploads/<file>`.
   */
  begin(sizeBytes: number, options?: CallOptions & { readonly filename?: string }): Promise<UploadAnswer>;
  get(file: string, options?: CallOptions): Promise<UploadAnswer>;
  delete(file: string, options?: CallOptions): Promise<UploadAnswer>;
}

/** These need a key with the scope `admin`. */
export interface Keys {
  /** A page, newest first. */
  list(options?: KeyListOptions): Promise<z.infer<typeof KeyList>>;
  /** The answer shows the key itself, once. The calling key must have each scope that it grants. */
  create(request: z.input<typeof NewKeyRequest>, options?: CallOptions): Promise<KeyWithSecret>;
  /** Gives the calling key a new secret; the old one works for another 24 hours. */
  rotate(keyId: string, options?: CallOptions): Promise<KeyWithSecret>;
  revoke(keyId: string, options?: CallOptions): Promise<KeyState>;
}

/** For the service's own pages, which use a session cookie instead of a key. */
export interface Session {
  begin(key: string, options?: CallOptions): Promise<z.infer<typeof ConsoleSessionState>>;
  end(options?: CallOptions): Promise<object>;
}

/**
 * Every operation throws SoundpostError, or the reason that `signal` was aborted with. None has a
 * time limit of its own: `AbortSignal.timeout` sets one.
 */
export interface SoundpostClient {
  /** Submits one job. */
  extract(
    request: z.input<typeof JobRequest> | FileJobRequest,
    options?: SubmitOptions,
  ): Promise<AcceptedJob>;
  /** Submits up to ten jobs, all or none. */
  batch(
    request: z.input<typeof BatchRequest>,
    options?: SubmitOptions,
  ): Promise<z.infer<typeof AcceptedBatch>>;
  batchState(batchId: string, options?: CallOptions): Promise<z.infer<typeof BatchState>>;
  /** A job in any state; a failed one has its `error`. */
  job(jobId: string, options?: CallOptions): Promise<Job>;
  /** A job; throws its error if it has failed. */
  status(jobId: string, options?: CallOptions): Promise<Job>;
  jobs(options?: ListOptions): Promise<z.infer<typeof JobList>>;
  /** Yields the key's new and changed jobs until aborted; reconnects by itself. */
  events(options?: EventsOptions): AsyncIterable<Job>;
  /**
   * Waits for the completed job; throws its error if it fails.
   * @typeParam File `null` for a probe, which has no file
   */
  waitFor<File extends OutputFile | null = OutputFile>(
    jobId: string,
    options?: WaitOptions,
  ): Promise<CompletedJob<File>>;
  /** A finished file as a response with a streaming `body`. */
  download(jobId: string, options?: DownloadOptions): Promise<Response>;
  /** Cancels an unfinished job, or deletes the files of a finished one. */
  cancel(jobId: string, options?: CallOptions): Promise<Job>;
  /** Retries a failed job as a new job. */
  retry(jobId: string, options?: SubmitOptions): Promise<AcceptedJob>;
  /** Retries or deletes up to 100 jobs; the retries are submitted all or none. */
  bulk(
    action: z.infer<typeof BulkRequest>['action'],
    jobs: readonly string[],
    options?: SubmitOptions,
  ): Promise<z.infer<typeof BulkResults>>;
  /** Sends the result of a completed job to a chat. */
  sendVoiceMessage(
    jobId: string,
    request: z.input<typeof VoiceMessageRequest>,
    options?: SubmitOptions,
  ): Promise<z.infer<typeof VoiceMessageAccepted>>;
  /** Deliveries to the webhook of a job. */
  deliveries(jobId: string, options?: CallOptions): Promise<z.infer<typeof DeliveryList>>;
  /** Resends a delivery at once, with the same webhook-id. */
  replayDelivery(
    jobId: string,
    deliveryId: string,
    options?: CallOptions,
  ): Promise<z.infer<typeof DeliveryList>>;
  /**
   * Uploads an output's file to its destination again. @param request a new URL or headers;
   * default: as before
   */
  replayDestination(
    jobId: string,
    name: string,
    request?: DestinationReplayRequest,
    options?: CallOptions,
  ): Promise<z.infer<typeof DeliveryList>>;
  /** Resends deliveries that failed at or after this time. @param since ISO 8601 */
  resendDeliveries(since: string, options?: ResendOptions): Promise<z.infer<typeof Resent>>;
  /** Webhook endpoints, the most recently called first. */
  endpoints(options?: EndpointListOptions): Promise<z.infer<typeof EndpointList>>;
  /**
   * Deliveries to one endpoint, newest first.
   * @param endpoint a URL; its query does not count
   */
  deliveriesTo(
    endpoint: string,
    options?: EndpointDeliveriesOptions,
  ): Promise<z.infer<typeof EndpointDeliveries>>;
  /** Posts a signed `webhook.test` to a URL; throws INVALID_WEBHOOK unless it answers 2xx. */
  testWebhook(url: string, options?: CallOptions): Promise<z.infer<typeof WebhookTest>>;
  /** The signing secret of the key’s webhooks, `whsec_…`. */
  webhookSecret(options?: CallOptions): Promise<z.infer<typeof WebhookSecret>>;
  /** Makes a new secret; for 24 hours the old one signs as well. */
  rotateWebhookSecret(options?: CallOptions): Promise<z.infer<typeof WebhookSecret>>;
  /** What the key has used and has left; with `from` or `to` also by day. */
  usage(options?: UsageOptions): Promise<z.infer<typeof Usage>>;
  readonly uploads: Uploads;
  readonly keys: Keys;
  readonly session: Session;
}

export function createClient(options: ClientOptions): SoundpostClient {
  const connection = new Connection(options);
  const get = <Data>(path: string, { signal }: CallOptions = {}): Promise<Data> =>
    connection.data(path, { signal });
  const remove = <Data>(path: string, { signal }: CallOptions = {}): Promise<Data> =>
    connection.data(path, { method: 'DELETE', signal });
  const submit = <Data>(
    path: string,
    body: { json?: unknown; form?: FormData },
    { signal, idempotencyKey }: SubmitOptions = {},
  ): Promise<Data> =>
    connection.data(path, { method: 'POST', ...body, signal, idempotent: { key: idempotencyKey } });
  return {
    extract: async (request, submitting) => submit('/v1/extract', await bodyOf(request), submitting),
    batch: (request, submitting) => submit('/v1/batch', { json: request }, submitting),
    batchState: (batchId, calling) => get(`/v1/batch/${part(batchId)}`, calling),
    job: (jobId, calling) => get(`/v1/jobs/${part(jobId)}`, calling),
    status: (jobId, calling) => get(`/v1/status/${part(jobId)}`, calling),
    jobs: ({ signal, ...query } = {}) => get(`/v1/jobs${queryOf(query)}`, { signal }),
    events: (watching = {}) => watchJobs(connection, watching),
    waitFor: (jobId, waiting = {}) => waitForEnd(connection, part(jobId), waiting),
    download: (jobId, { signal, rendition, name, range } = {}) =>
      connection.response(`/v1/download/${part(jobId)}${queryOf({ rendition, name })}`, {
        signal,
        ...(range ? { headers: { Range: `bytes=${range.start}-${range.end ?? ''}` } } : {}),
      }),
    cancel: (jobId, calling) => remove(`/v1/jobs/${part(jobId)}`, calling),
    retry: (jobId, submitting) => submit(`/v1/jobs/${part(jobId)}/retry`, {}, submitting),
    bulk: (action, jobs, submitting) => submit('/v1/jobs/bulk', { json: { action, jobs } }, submitting),
    sendVoiceMessage: (jobId, request, submitting) =>
      submit(`/v1/jobs/${part(jobId)}/voice-message`, { json: request }, submitting),
    deliveries: (jobId, calling) => get(`/v1/jobs/${part(jobId)}/deliveries`, calling),
    replayDelivery: (jobId, deliveryId, { signal } = {}) =>
      connection.data(`/v1/jobs/${part(jobId)}/deliveries/${part(deliveryId)}/replay`, {
        method: 'POST',
        signal,
      }),
    replayDestination: (jobId, name, request = {}, { signal } = {}) =>
      connection.data(`/v1/jobs/${part(jobId)}/destinations/${part(name)}/replay`, {
        method: 'POST',
        json: request,
        signal,
      }),
    resendDeliveries: (since, { signal, endpoint } = {}) =>
      connection.data('/v1/deliveries/resend', { method: 'POST', json: { since, endpoint }, signal }),
    endpoints: ({ signal, ...query } = {}) => get(`/v1/endpoints${queryOf(query)}`, { signal }),
    deliveriesTo: (endpoint, { signal, ...query } = {}) =>
      get(`/v1/deliveries${queryOf({ endpoint, ...query })}`, { signal }),
    testWebhook: (url, { signal } = {}) =>
      connection.data('/v1/webhooks/test', { method: 'POST', json: { url }, signal }),
    webhookSecret: (calling) => get('/v1/webhooks/secret', calling),
    rotateWebhookSecret: ({ signal } = {}) =>
      connection.data('/v1/webhooks/secret', { method: 'POST', signal }),
    usage: ({ signal, ...query } = {}) => get(`/v1/usage${queryOf(query)}`, { signal }),
    uploads: {
      create: async (file, { signal, filename } = {}) =>
        connection.data('/v1/uploads', { method: 'POST', form: await formOf(file, filename), signal }),
      begin: (sizeBytes, { signal, filename } = {}) =>
        connection.data('/v1/uploads', {
          method: 'POST',
          headers: {
            'Tus-Resumable': '1.0.0',
            'Upload-Length': String(sizeBytes),
            ...(filename === undefined ? {} : { 'Upload-Metadata': `filename ${base64(filename)}` }),
          },
          signal,
        }),
      get: (file, calling) => get(`/v1/uploads/${part(file)}`, calling),
      delete: (file, calling) => remove(`/v1/uploads/${part(file)}`, calling),
    },
    keys: {
      list: ({ signal, ...query } = {}) => get(`/v1/keys${queryOf(query)}`, { signal }),
      create: (request, { signal } = {}) =>
        connection.data('/v1/keys', { method: 'POST', json: request, signal }),
      rotate: (keyId, { signal } = {}) =>
        connection.data(`/v1/keys/${part(keyId)}/rotate`, { method: 'POST', signal }),
      revoke: (keyId, calling) => remove(`/v1/keys/${part(keyId)}`, calling),
    },
    session: {
      begin: (key, { signal } = {}) =>
        connection.data('/v1/session', { method: 'POST', json: { key }, signal }),
      end: (calling) => remove('/v1/session', calling),
    },
  };
}

async function bodyOf(
  request: z.input<typeof JobRequest> | FileJobRequest,
): Promise<{ json: unknown } | { form: FormData }> {
  if (!('file' in request)) {
    return { json: request };
  }
  const { file, filename, ...job } = request;
  return { form: await formOf(file, filename, job) };
}

/** Encodes the text's UTF-8 bytes; btoa accepts bytes only. */
function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** One path segment, encoded so that an untrusted id cannot change the operation. */
function part(id: string): string {
  return encodeURIComponent(id);
}

function queryOf(query: Readonly<Record<string, string | number | undefined>>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) {
      given.set(name, String(value));
    }
  }
  return given.size === 0 ? '' : `?${given}`;
}
