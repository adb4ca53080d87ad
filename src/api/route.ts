/** Routes as values, to mount, to answer 405, and for the authorization tests to walk. */
import type { Request, Response } from 'express';
import type { Scope } from 'soundpost-contract/api-keys';
import type { ErrorCode, ServiceError } from 'soundpost-contract/errors';
import type { Job } from 'soundpost-contract/job';
import type { AnswerDocs, ErrorDocs, OperationDocs } from 'soundpost-kit/http/openapi/description';
import type { AuditLog, Logger } from 'soundpost-kit/observe/logger';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Probes } from 'soundpost-kit/observe/probes';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import type { UrlSigner } from 'soundpost-kit/signing/signatures';
import type { DiskSpace } from 'soundpost-kit/storage/disk-space';
import type { DownloadAddress, IncomingUploads, Storage } from 'soundpost-kit/storage/storage';
import type { SandboxLevel } from 'soundpost-media/sandbox';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { z } from 'zod';
import type { GatewayKind } from '../followups/gateways/adapters.ts';
import type { JobFollowUps } from '../followups/job-followups.ts';
import type { JobChanges } from '../jobs/job-changes.ts';
import type { JobQueue } from '../jobs/job-queue.ts';
import type { ApiKey, ApiKeys } from '../jobs/tenants/api-keys.ts';
import type { ConsoleSession, Sessions } from '../jobs/tenants/sessions.ts';
import type { WebhookSecrets } from '../jobs/tenants/webhook-secrets.ts';
import type { consolePage } from './console-page.ts';
import type { SharedReads } from './event-streams.ts';

/** What the handlers use; wired in start.ts. */
export interface ApiServices {
  readonly redis: Redis;
  readonly probes: Probes;
  readonly jobs: JobQueue;
  readonly keys: ApiKeys;
  readonly sessions: Sessions;
  readonly webhookSecrets: WebhookSecrets;
  readonly followUps: JobFollowUps;
  readonly changes: JobChanges;
  readonly watchedJobs: SharedReads<Job | undefined>;
  readonly storage: Storage;
  /** The uploads' volume. */
  readonly disk: DiskSpace;
  /** Where callers download from the storage itself; undefined: they download from us. */
  readonly downloadAddress: DownloadAddress | undefined;
  /** Bytes of incomplete uploads. */
  readonly incoming: IncomingUploads;
  readonly outbound: Outbound;
  /** For data encrypted at rest. */
  readonly sealer: Sealer;
  readonly signer: UrlSigner;
  readonly logger: Logger;
  readonly audit: AuditLog;
  readonly observer: Observer;
  readonly settings: ApiSettings;
}

export interface ApiSettings {
  /** Absolute base URL in answers, without trailing slash. */
  readonly publicUrl: string;
  readonly readPerMinute: number;
  readonly submitPerMinute: number;
  readonly unfinishedPerKey: number;
  readonly eventStreamsPerKey: number;
  readonly uploadsPerKey: number;
  readonly uploadBytesPerKey: number;
  /** Of transcripts; undefined: no limit. */
  readonly transcriptMinutesPerDay: number | undefined;
  /** Seconds; undefined: no limit. */
  readonly processorPerMinute: number | undefined;
  readonly maxInputBytes: number;
  readonly uploadTtlSeconds: number;
  readonly outputTtlSeconds: number;
  readonly jobTtlSeconds: number;
  /** Jobs that a worker encodes at the same time, for estimates. */
  readonly workerConcurrency: number;
  /** Additional jobs that it only downloads. */
  readonly downloadsAhead: number;
  /** Number of proxies whose forwarded address is trusted. */
  readonly trustProxy: number;
  /** Origins whose web pages may call the API. */
  readonly corsOrigins: readonly string[];
  /** The console at `/`; omitted where it is off. */
  readonly console?: Parameters<typeof consolePage>[0];
  /** Standard Webhooks secret of the events that the gateway posts. */
  readonly gatewayEventsSecret: string;
  /** Whose events arrive, and what can be asked of it. */
  readonly gatewayKind: GatewayKind;
  /** Accepts another server's events; undefined: they are rejected. */
  readonly gatewayEventsToken: string | undefined;
  /** Whether a transcriber is configured, so that transcripts are offered. */
  readonly hasTranscriber: boolean;
  readonly transcriberModel: string;
  /** How this process confines ffmpeg; omitted where it runs none. */
  readonly sandbox?: SandboxLevel;
}

/**
 * - `public`: no key.
 * - `key`: a key with the scope; `rate` names the rate limit that a request counts against. With
 *   `bearer` the key may come as a bearer token too.
 * - `signature`: a key with the scope, or a signature in the query that the handler checks.
 */
export type Access =
  | { readonly by: 'public' }
  | {
      readonly by: 'key';
      readonly scope: Scope;
      readonly rate: 'read' | 'submit';
      readonly bearer?: true;
    }
  | { readonly by: 'signature'; readonly scope: Scope; readonly rate: 'read' };

/** What OpenAPI says about a route. Every route with a key has more errors than `errors`. */
interface RouteDocs extends Omit<OperationDocs<ErrorCode>, 'answers'> {
  readonly tag:
    | 'Jobs'
    | 'Batches'
    | 'Uploads'
    | 'Downloads'
    | 'Transcription'
    | 'Webhooks'
    | 'Keys'
    | 'Service';
  readonly answers: Readonly<Record<number, ApiAnswerDocs>>;
}

interface ApiAnswerDocs extends AnswerDocs<ErrorCode> {
  /** `data` of the envelope; omitted where the answer has no envelope. */
  readonly data?: z.ZodType;
}

export interface RouteContext {
  readonly request: Request;
  readonly response: Response;
  /** The caller's key; undefined on public routes and with a signature instead. */
  readonly key: ApiKey | undefined;
  /** Of the console, by which the key was claimed. */
  readonly session?: ConsoleSession | undefined;
  /** Fields of the job in the path, if the route reads it; otherwise empty. */
  readonly record?: Readonly<Record<string, string>> | undefined;
  readonly services: ApiServices;
}

export interface Route {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** Express path; routes under /v1 also answer under the prefix /audio-extract. */
  readonly path: string;
  readonly access: Access;
  readonly docs: RouteDocs;
  /** The record of the job in the path is read in the same round trip as the key. */
  readonly reads?: 'job';
  /** Headers of the answer to OPTIONS, for protocols that need them. */
  readonly discovery?: (settings: ApiSettings) => Readonly<Record<string, string>>;
  /** How errors are sent, where another interface has its own form. Default: the envelope. */
  readonly errors?: {
    readonly send: (response: Response, error: ServiceError) => void;
    readonly docs: ErrorDocs<ErrorCode>;
  };
  readonly handle: (context: RouteContext) => Promise<void>;
}

/** The caller's key, on a route that requires one. */
export function keyOf({ key }: RouteContext): ApiKey {
  if (key === undefined) {
    throw new Error('a route without a key asked for the caller');
  }
  return key;
}
