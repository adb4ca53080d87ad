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
import { type DestinationReplay, openDestination } from '../../jobs/destinations.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import {
  type DestinationOutcome,
  DestinationPayload,
  filesOf,
  type StoredFile,
  type StoredTranscript,
} from '../../jobs/payloads.ts';
import type { JobFollowUps } from '../job-followups.ts';
import { type Attempt, type FollowUpKind, scheduled, type Tried } from '../kind.ts';
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
  /** The latest replay of the delivery. */
  readonly readReplay: (jobId: string, name: string) => Promise<DestinationReplay | undefined>;
  readonly followUps: Pick<JobFollowUps, 'addDestinationWebhook' | 'continuePut'>;
  /** Attempts, in seconds after the first. */
  readonly scheduleSeconds: readonly number[];
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
/** How often to check whether the caller had the files erased, or gave another address. */
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
  const { readJob, readReplay, sealer, observer, followUps } = services;
  return {
    payload: DestinationPayload,
    async prepare(payload) {
      const { jobId, name } = payload;
      const [record, replay] = await Promise.all([readJob(jobId), readReplay(jobId, name)]);
      const found = findFile(record, payload, replay, sealer);
      return typeof found === 'string'
        ? ended({ tried: 'refused', error: found }, payload, replay, services)
        : { ready: found };
    },
    async try(found, payload, attempt, signal) {
      const { jobId, name } = payload;
      const startedAt = performance.now();
      const answer = await send(found, payload, services, signal);
      observer?.destinationTried(answer.tried, (performance.now() - startedAt) / 1000);
      const replay = await readReplay(jobId, name);
      return replay?.id === found.replay?.id
        ? conclude(answer, found, payload, attempt, services)
        : { outcome: 'step', error: answer.error ?? REPLACED, httpStatus: answer.httpStatus };
    },
    schedule: scheduled(services.scheduleSeconds),
    // Each file has its own path, so what is known of an endpoint is this delivery's own.
    async turn({ jobId, name, tenant, origin }, isRetried) {
      const { address } = (await readReplay(jobId, name)) ?? {};
      return { key: tenant, host: address ? new URL(address.url).origin : origin, isRetried, places: PLACES };
    },
    async ended({ jobId, name }, outcome) {
      const [record, replay] = await Promise.all([readJob(jobId), readReplay(jobId, name)]);
      const isReplaced = outcome !== undefined && outcome.replay !== replay?.id;
      if (record === undefined || isReplaced) return;
      await followUps.addDestinationWebhook(record, name, outcome ?? NOT_PUT);
    },
    jobOf: ({ jobId }) => jobId,
    tidy: ({ jobId, name }) => followUps.continuePut(jobId, name),
    logSeconds: services.logSeconds,
  };
}

function conclude(
  answer: Answer,
  { destination, replay }: Found,
  payload: DestinationPayload,
  { last }: Attempt,
  services: DestinationServices,
): Tried<DestinationOutcome> {
  const { tried, error, httpStatus, retryAfterSeconds } = answer;
  if (tried !== 'failed' || error === undefined || last) {
    return ended(answer, payload, replay, services);
  }
  const { jobId, name: output } = payload;
  const { origin } = new URL(destination.url);
  services.logger.warn({ jobId, output, origin, error }, 'a destination did not take a file');
  return { outcome: 'retry', error, httpStatus, retryAfterSeconds };
}

function ended(
  { error, httpStatus }: Answer,
  { jobId, name: output }: DestinationPayload,
  replay: DestinationReplay | undefined,
  { logger, observer }: DestinationServices,
): Tried<DestinationOutcome> {
  const status = error === undefined ? 'completed' : 'failed';
  observer?.destinationEnded(status);
  const of = replay && { replay: replay.id };
  if (error === undefined) return { outcome: 'done', result: { status, error: null, ...of }, httpStatus };
  logger.error({ jobId, output, error }, 'a file was not put to its destination');
  const failure = { code: 'DESTINATION_FAILED', message: error } as const;
  return { outcome: 'done', result: { status, error: failure, ...of }, error, httpStatus };
}

interface Found {
  readonly file: StoredFile | StoredTranscript;
  readonly destination: DestinationRequest;
  readonly replay: DestinationReplay | undefined;
}

/** A text says why there is nothing to deliver. */
function findFile(
  record: JobRecord | undefined,
  { jobId, name, transcript }: DestinationPayload,
  replay: DestinationReplay | undefined,
  sealer: Sealer,
): Found | string {
  const file =
    transcript ?? (record?.result ? filesOf(record.result).find((one) => one.name === name) : undefined);
  if (record === undefined || file === undefined) return GONE;
  if (record.erased) return ERASED;
  try {
    const destination = openDestination(sealer, jobId, record.payload, name, replay);
    return destination === undefined ? GONE : { file, destination, replay };
  } catch {
    return 'the destination can no longer be decrypted: SECRET_KEY has changed';
  }
}

const EXPIRED = 'the file expired before it was put';
const GONE = 'the record of the job has expired';
const REPLACED = 'it was given another address';
const ERASED = 'the files of the job were erased before this one was put';

async function send(
  { file, destination, replay }: Found,
  { jobId, name }: DestinationPayload,
  services: DestinationServices,
  signal: AbortSignal,
): Promise<Answer> {
  const { outbound, storage, retryUntilUp, tracing = noTracing } = services;
  const useless = new AbortController();
  const looking = setInterval(async () => {
    if (await services.isErased(jobId).catch(() => false)) useless.abort(new Error(ERASED));
    const now = await services.readReplay(jobId, name).catch(() => replay);
    if (now?.id !== replay?.id) useless.abort(new Error(REPLACED));
  }, LOOK_MS);
  const ended = AbortSignal.any([signal, useless.signal]);
  let late: AbortSignal | undefined;
  try {
    // While the storage is down, no receiver waits and none of its time limits run. If it breaks
    // off
    // in the middle, the file is put again from its beginning, and no attempt is used up.
    return await retryUntilUp(ended, async () => {
      const body = await storage.read(file.storageKey);
      using limit = deadline(services.longestMs ?? LONGEST_PUT_MS, { signal: ended });
      late = limit.signal;
      return await tracing.span(
        'PUT destination',
        { 'http.request.method': 'PUT', 'server.address': new URL(destination.url).hostname },
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
    });
  } catch (error) {
    signal.throwIfAborted();
    return late?.aborted && !ended.aborted
      ? { tried: 'failed', error: 'the destination took too long for the whole file' }
      : failed(error, file, useless.signal);
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

function failed(error: unknown, file: Found['file'], useless: AbortSignal): Answer {
  if (useless.aborted) return { tried: 'refused', error: useless.reason.message };
  if (error instanceof ObjectNotFound) {
    const hasExpired = Date.parse(file.expiresAt) <= redisNow();
    return { tried: 'refused', error: hasExpired ? EXPIRED : 'the file is no longer stored' };
  }
  if (error instanceof OutboundRefused)
    return { tried: 'refused', error: `the destination: ${error.message}` };
  if (error instanceof OutboundFailed) {
    return { tried: error.retryable ? 'failed' : 'refused', error: `the destination: ${error.message}` };
  }
  return { tried: 'failed', error: 'the stored file could not be read' };
}
