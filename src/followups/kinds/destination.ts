/** Delivers a finished file to its destination (decisions A8), completely or not at all. */

import { deadline } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { DestinationRequest } from 'soundpost-contract/destination';
import { fileKindOf } from 'soundpost-contract/transcripts';
import type { DestinationTry, Observer } from 'soundpost-kit/observe/metrics/observer';
import { noTracing, type Tracing } from 'soundpost-kit/observe/tracing/tracing';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import { ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import type { Outbound } from 'soundpost-outbound/outbound';
import { openDestination } from '../../jobs/destinations.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import {
  type DestinationOutcome,
  DestinationPayload,
  filesOf,
  type StoredFile,
  type StoredTranscript,
} from '../../jobs/payloads.ts';
import type { JobFollowUps } from '../job-followups.ts';
import { type Attempt, type FollowUpKind, PUT_SCHEDULE_SECONDS, scheduled, type Tried } from '../kind.ts';
import { NOT_PUT } from '../state/destinations.ts';

interface DestinationServices {
  readonly outbound: Pick<Outbound, 'put'>;
  readonly storage: Pick<Storage, 'read'>;
  /** For storage operations: retries while the storage is down. */
  readonly retryUntilUp: <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>;
  readonly sealer: Sealer;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  /** Whether the caller had the job's files erased. */
  readonly isErased: (jobId: string) => Promise<boolean>;
  readonly followUps: Pick<JobFollowUps, 'addDestinationWebhook'>;
  readonly logSeconds: number;
  readonly logger: Logger;
  /** Timeout without progress, and for the answer after the last byte; default 120 s. */
  readonly idleMs?: number;
  /** Timeout for the whole file. Default {@link LONGEST_PUT_MS}. */
  readonly longestMs?: number;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
}

/** The last 4 MiB can sit in system buffers: a link of 35 KiB/s takes this long. */
const IDLE_MS = 120_000;
/** Limits receivers that only trickle. 8 GiB at 0.4 MB/s take this long. */
const LONGEST_PUT_MS = 6 * 60 * 60_000;
/** How often to check whether the caller had the files erased. */
const LOOK_MS = 2_000;
/** Status codes worth a retry (decisions A7, RFC 8470 for 425). */
const PASSING = new Set([408, 425, 429]);

/** Concurrent deliveries of all processes. The lease outlasts the longest delivery. */
const PLACES = { name: 'destination', perKey: 8, perHost: 32, leaseMs: 7 * 60 * 60_000 } as const;

/** The outcome of an attempt. */
interface Answer {
  readonly tried: DestinationTry;
  /** Undefined if the file was accepted. */
  readonly error?: string;
  /** Undefined without an answer. */
  readonly httpStatus?: number;
  readonly retryAfterSeconds?: number | undefined;
}

export function destinationKind(
  services: DestinationServices,
): FollowUpKind<DestinationPayload, Found, DestinationOutcome> {
  const { readJob, sealer, observer, followUps } = services;
  return {
    payload: DestinationPayload,
    async prepare(payload) {
      const found = findFile(await readJob(payload.jobId), payload, sealer);
      return typeof found === 'string'
        ? ended({ tried: 'refused', error: found }, payload, services)
        : { ready: found };
    },
    async try(found, payload, attempt, signal) {
      const startedAt = performance.now();
      const answer = await send(found, payload, services, signal);
      observer?.destinationTried(answer.tried, (performance.now() - startedAt) / 1000);
      return conclude(answer, payload, attempt, services);
    },
    schedule: scheduled(PUT_SCHEDULE_SECONDS),
    turn: async ({ tenant, origin }) => ({ key: tenant, host: origin, places: PLACES }),
    async ended({ jobId, name }, outcome = NOT_PUT) {
      const record = await readJob(jobId);
      if (record !== undefined) await followUps.addDestinationWebhook(record, name, outcome);
    },
    jobOf: ({ jobId }) => jobId,
    logSeconds: services.logSeconds,
  };
}

function conclude(
  answer: Answer,
  payload: DestinationPayload,
  { last }: Attempt,
  services: DestinationServices,
): Tried<DestinationOutcome> {
  const { tried, error, httpStatus, retryAfterSeconds } = answer;
  if (tried !== 'failed' || error === undefined || last) return ended(answer, payload, services);
  const { jobId, name: output, origin } = payload;
  services.logger.warn({ jobId, output, origin, error }, 'a destination did not take a file');
  return { outcome: 'retry', error, httpStatus, retryAfterSeconds };
}

function ended(
  { error, httpStatus }: Answer,
  { jobId, name: output, origin }: DestinationPayload,
  { logger, observer }: DestinationServices,
): Tried<DestinationOutcome> {
  const status = error === undefined ? 'completed' : 'failed';
  observer?.destinationEnded(status);
  if (error === undefined) return { outcome: 'done', result: { status, error: null }, httpStatus };
  logger.error({ jobId, output, origin, error }, 'a file was not put to its destination');
  const failure = { code: 'DESTINATION_FAILED', message: error } as const;
  return { outcome: 'done', result: { status, error: failure }, error, httpStatus };
}

interface Found {
  readonly file: StoredFile | StoredTranscript;
  readonly destination: DestinationRequest;
}

/** A text says why there is nothing to deliver. */
function findFile(
  record: JobRecord | undefined,
  { jobId, name, transcript }: DestinationPayload,
  sealer: Sealer,
): Found | string {
  const file =
    transcript ?? (record?.result ? filesOf(record.result).find((one) => one.name === name) : undefined);
  if (record === undefined || file === undefined) return GONE;
  if (record.erased) return ERASED;
  if (Date.parse(file.expiresAt) <= redisNow()) return 'the file expired before it was put';
  try {
    const destination = openDestination(sealer, jobId, record.payload, name);
    return destination === undefined ? GONE : { file, destination };
  } catch {
    return 'the destination can no longer be decrypted: SECRET_KEY has changed';
  }
}

const GONE = 'the record of the job has expired';
const ERASED = 'the files of the job were erased before this one was put';

async function send(
  { file, destination }: Found,
  { jobId, origin }: DestinationPayload,
  services: DestinationServices,
  signal: AbortSignal,
): Promise<Answer> {
  const { outbound, storage, retryUntilUp, tracing = noTracing } = services;
  const erased = new AbortController();
  const looking = setInterval(async () => {
    if (await services.isErased(jobId).catch(() => false)) erased.abort(new Error(ERASED));
  }, LOOK_MS);
  const ended = AbortSignal.any([signal, erased.signal]);
  let late: AbortSignal | undefined;
  try {
    // While the storage is down, no receiver waits and none of its time limits run.
    const body = await retryUntilUp(ended, () => storage.read(file.storageKey));
    using limit = deadline(services.longestMs ?? LONGEST_PUT_MS, { signal: ended });
    late = limit.signal;
    return await tracing.span(
      'PUT destination',
      { 'http.request.method': 'PUT', 'server.address': new URL(origin).hostname },
      async (note) => {
        const { status, retryAfterSeconds } = await outbound.put({
          purpose: 'destination',
          url: destination.url,
          headers: headersOf(destination, file),
          body,
          sizeBytes: file.size,
          idleMs: services.idleMs ?? IDLE_MS,
          signal: limit.signal,
        });
        note({ 'http.response.status_code': status });
        return answered(status, retryAfterSeconds);
      },
      'client',
    );
  } catch (error) {
    signal.throwIfAborted();
    return late?.aborted && !ended.aborted
      ? { tried: 'failed', error: 'the destination took too long for the whole file' }
      : failed(error, erased.signal);
  } finally {
    clearInterval(looking);
  }
}

/** The caller's headers replace ours, except the digest (RFC 9530), which none can set. */
function headersOf({ headers = {} }: DestinationRequest, file: Found['file']): Record<string, string> {
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  return {
    ...(!hasType && { 'content-type': fileKindOf(file).mediaType }),
    ...headers,
    'repr-digest': `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`,
  };
}

function answered(status: number, retryAfterSeconds: number | undefined): Answer {
  if (status >= 200 && status < 300) return { tried: 'taken', httpStatus: status };
  const isRedirect = status >= 300 && status < 400;
  const error = `the destination answered with status ${status}${isRedirect ? '; redirects are not followed' : ''}`;
  const tried = status >= 500 || PASSING.has(status) ? 'failed' : 'refused';
  return { tried, error, httpStatus: status, retryAfterSeconds };
}

function failed(error: unknown, erased: AbortSignal): Answer {
  if (erased.aborted) return { tried: 'refused', error: ERASED };
  if (error instanceof ObjectNotFound) return { tried: 'refused', error: 'the file is no longer stored' };
  if (error instanceof OutboundRefused)
    return { tried: 'refused', error: `the destination: ${error.message}` };
  if (error instanceof OutboundFailed) {
    return { tried: error.retryable ? 'failed' : 'refused', error: `the destination: ${error.message}` };
  }
  return { tried: 'failed', error: 'the stored file could not be read' };
}
