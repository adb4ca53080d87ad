/**
 * Turns a schema's faults into one error (decisions A2): INVALID_REQUEST for a missing required
 * field, else the field's code. Of several, INVALID_REQUEST wins, then the table's order.
 */

import { type Deadline, deadline, untilAborted } from 'soundpost-base/deadline';
import { type ErrorCode, ServiceError } from 'soundpost-contract/errors';
import { isAudioFormat, outputFormats } from 'soundpost-contract/formats';
import { MAX_BATCH_JOBS } from 'soundpost-contract/job-request';
import { OutputRequest } from 'soundpost-contract/output-request';
import { fieldPath, jsonReader, textReader } from 'soundpost-kit/http/json-body';
import { z } from 'zod';
import { Semaphore } from '../jobs/semaphore.ts';
import { keyOf, type RouteContext } from './route.ts';

/** JSON body (decisions A1): uncompressed, application/json only. */
const MAX_BYTES = 256 * 1024;
/** Of a request for a single job: its record is kept for days (decisions A6). */
export const MAX_JOB_BYTES = 64 * 1024;
/** With its video inside, in base64. */
const MAX_DATA_REQUEST_BYTES = 12 * 1024 * 1024;
/** Each is held in memory until it is stored; a newcomer among the keys gets a place of its own. */
const largeBodies = new Semaphore(8, 8);
/** How long a body waits for its place, and how long it then may take to arrive. */
const PLACE_WITHIN_MS = 10_000;
const ARRIVES_WITHIN_MS = 60_000;

const OF_JSON = { types: ['application/json'], inflate: false, strict: false };

export const readJson = jsonReader({ ...OF_JSON, maxBytes: MAX_BYTES });
/** No body reads as `{}`. */
export const readOptionalJson = jsonReader({ ...OF_JSON, strict: true, maxBytes: MAX_BYTES });
const readSmall = jsonReader({ ...OF_JSON, maxBytes: MAX_JOB_BYTES });
const readLarge = jsonReader({ ...OF_JSON, maxBytes: MAX_DATA_REQUEST_BYTES });
export const readText = textReader(MAX_BYTES);

interface JobBody {
  readonly body: unknown;
  /** Lets another large body in: to be called once this one is stored, or of no use. */
  readonly release: () => void;
}

/**
 * The request of a single job: 64 KiB besides `source.data`. More than that arrives only with a
 * place, for which it waits up to 10 s, and within 60 s.
 * @throws ServiceError PAYLOAD_TOO_LARGE; SERVICE_UNAVAILABLE without a place, INVALID_REQUEST if
 * the body takes too long
 */
export async function readJobJson(context: RouteContext): Promise<JobBody> {
  const { request, response } = context;
  if (Number(request.get('content-length')) <= MAX_JOB_BYTES) {
    return { body: await readSmall(request, response), release: () => undefined };
  }
  const arriving = largeBody(context);
  try {
    const body = await untilAborted(readLarge(request, response), arriving.failed);
    // Express keeps it as long as the request, which may wait for the end of its job.
    request.body = undefined;
    const { success, data } = WithData.safeParse(body);
    const bytes = success
      ? Buffer.byteLength(JSON.stringify({ ...data, source: null }))
      : arriving.receivedBytes();
    if (bytes > MAX_JOB_BYTES) {
      throw new ServiceError(
        'PAYLOAD_TOO_LARGE',
        'the request of a job may have at most 64 KiB as JSON, besides source.data',
      );
    }
    return { body, release: arriving.release };
  } catch (error) {
    arriving.release();
    // The rest is dropped: the reader of the body would keep it.
    request.removeAllListeners('data').resume();
    throw error;
  } finally {
    arriving.stop();
  }
}

/** Counts the body while it is read, and stops it at 64 KiB until it has a place. */
function largeBody(context: RouteContext) {
  const { request, response } = context;
  const left = new AbortController();
  const leave = (): void => left.abort(new ServiceError('INVALID_REQUEST', 'the body is incomplete'));
  const failing = new AbortController();
  let receivedBytes = 0;
  let limit: Deadline | undefined;
  let place: Promise<() => void> | undefined;
  const enter = async (): Promise<() => void> => {
    let hasPlace = false;
    const over = deadline(PLACE_WITHIN_MS, {
      signal: left.signal,
      reason: () => (hasPlace ? tooSlow() : noPlace()),
    });
    limit = over;
    over.signal.addEventListener('abort', () => failing.abort(over.signal.reason));
    const free = await largeBodies.acquire({ key: keyOf(context).id, signal: over.signal });
    hasPlace = true;
    over.renew(ARRIVES_WITHIN_MS);
    request.resume();
    return free;
  };
  const count = (chunk: Buffer): void => {
    receivedBytes += chunk.length;
    if (receivedBytes <= MAX_JOB_BYTES || place !== undefined) return;
    request.pause();
    place = enter();
    place.catch(() => undefined);
  };
  response.once('close', leave);
  request.on('data', count);
  return {
    failed: failing.signal,
    receivedBytes: () => receivedBytes,
    release: () => void place?.then((free) => free()).catch(() => undefined),
    stop: () => {
      limit?.[Symbol.dispose]();
      response.off('close', leave);
      request.off('data', count);
    },
  };
}

function noPlace(): ServiceError {
  return new ServiceError(
    'SERVICE_UNAVAILABLE',
    'too many requests with source.data arrived at once; try again, or upload the file first',
    { retryAfterSeconds: PLACE_WITHIN_MS / 1000 },
  );
}

function tooSlow(): ServiceError {
  return new ServiceError(
    'INVALID_REQUEST',
    `a request with source.data must arrive within ${ARRIVES_WITHIN_MS / 1000} s; upload the file first`,
  );
}

const WithData = z.looseObject({ source: z.object({ type: z.literal('data') }) });

export interface Fault {
  readonly code: ErrorCode;
  /** For example `jobs[3].output.bitrate`. */
  readonly path: string;
  readonly message: string;
}

const precedence: readonly ErrorCode[] = [
  'INVALID_REQUEST',
  'INVALID_SOURCE',
  'INVALID_OUTPUT',
  'INVALID_WEBHOOK',
];

const summaries: Readonly<Partial<Record<ErrorCode, string>>> = {
  INVALID_REQUEST: 'the request is not valid',
  INVALID_SOURCE: 'the source is not valid',
  INVALID_OUTPUT: 'the output is not valid',
  INVALID_WEBHOOK: 'the webhook is not valid',
};

/** Returns the parsed request. Throws a ServiceError when it does not fit. */
export function parseRequest<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body, { reportInput: true });
  if (parsed.success) {
    return parsed.data;
  }
  throw faultsError(schemaFaults(parsed.error));
}

/** Faults of a schema run with `reportInput`. */
export function schemaFaults({ issues }: z.ZodError): Fault[] {
  return issues.flatMap((issue) => faultsOf(issue));
}

export function faultsError(faults: readonly Fault[]): ServiceError {
  const code =
    precedence.find((candidate) => faults.some((fault) => fault.code === candidate)) ?? 'INVALID_REQUEST';
  const details = faults
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
    .join('; ');
  return new ServiceError(code, summaries[code] ?? 'the request is not valid', { details });
}

export function tooManyJobs(count: number): ServiceError {
  return new ServiceError('TOO_MANY_JOBS', `the batch has too many jobs (max ${MAX_BATCH_JOBS})`, {
    details: `jobs: ${count} were given`,
  });
}

function faultsOf(issue: z.core.$ZodIssue): Fault[] {
  const path = fieldPath(issue.path);
  if (issue.code === 'unrecognized_keys') {
    const format = derivedFormatOf(issue);
    return issue.keys.map((key) => ({
      code: format === undefined ? 'INVALID_REQUEST' : 'INVALID_OUTPUT',
      path: path === '' ? key : `${path}.${key}`,
      message: `is not a field of ${format === undefined ? 'this object' : `a ${format}`}`,
    }));
  }
  const fault: Fault = isMissing(issue)
    ? { code: 'INVALID_REQUEST', path, message: 'is required' }
    : { code: codeOf(issue.path), path, message: issue.message };
  return [fault, ...besideFormat(issue)];
}

/** Where the format of `output` is unknown, its other fields are checked as those of audio. */
function besideFormat({ path, input }: z.core.$ZodIssue): Fault[] {
  const [section, field, ...inside] = fieldsIn(path);
  const isFormat = section === 'output' && field === 'format' && inside.length === 0;
  if (!isFormat || typeof input !== 'object') return [];
  const { issues = [] } = OutputRequest.safeParse(input, { reportInput: true }).error ?? {};
  return issues
    .filter((issue) => issue.path[0] !== 'format')
    .flatMap((issue) => faultsOf({ ...issue, path: [...path.slice(0, -1), ...issue.path] }));
}

/** For an output that is not audio: unknown fields count as bad values (decisions A2 and A8). */
function derivedFormatOf({ path, input }: z.core.$ZodIssue): string | undefined {
  const isOutput = /^output(s\[\d+\])?$/.test(fieldPath(fieldsIn(path)));
  const format = isOutput ? OfKnownFormat.safeParse(input).data?.format : undefined;
  return isAudioFormat(format) ? undefined : format;
}

const OfKnownFormat = z.object({ format: z.enum(['probe', ...Object.keys(outputFormats)]) });

/** The field is missing rather than wrong. */
function isMissing(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_union' && 'discriminator' in issue) {
    const { input, discriminator } = issue;
    return typeof input === 'object' && input !== null && !(String(discriminator) in input);
  }
  return issue.code !== 'custom' && issue.input === undefined;
}

/** The error code in the table of fields for a path. */
function codeOf(path: readonly PropertyKey[]): ErrorCode {
  const [section, field] = fieldsIn(path);
  if (section === 'source' && field !== undefined) {
    return 'INVALID_SOURCE';
  }
  if (fieldsIn(path).includes('destination')) {
    return 'INVALID_REQUEST';
  }
  if ((section === 'output' && field !== undefined) || section === 'outputs') {
    return 'INVALID_OUTPUT';
  }
  const isWebhook = (section === 'options' && field === 'webhook') || section === 'webhook';
  return isWebhook ? 'INVALID_WEBHOOK' : 'INVALID_REQUEST';
}

/** The path within one job. */
function fieldsIn(path: readonly PropertyKey[]): readonly PropertyKey[] {
  return path[0] === 'jobs' ? path.slice(2) : path;
}
