/** Downloads an untrusted file to disk within limits; retries and resumes it. */
import { type FileHandle, open, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { deadline } from 'soundpost-base/deadline';
import { OutboundFailed } from './errors.ts';
import {
  type Answer,
  contentRangeOf,
  discard,
  get,
  headerOf,
  isOfVersion,
  isOpenEnded,
  limitedBody,
  type Route,
  refuseEncoded,
  statusFailure,
  strongValidator,
  tooLarge,
} from './exchange.ts';
import type { OriginHeaders } from './origin-headers.ts';
import { sourceName } from './source-name.ts';

export interface DownloadLimits {
  /** Until the answer's headers arrive. Default 20 s. */
  readonly headersTimeoutMs: number;
  /** Between two chunks of the body. Default 20 s. */
  readonly idleTimeoutMs: number;
  /** Default 8 KiB/s, averaged over `rateWindowMs` (default 20 s). */
  readonly minBytesPerSecond: number;
  readonly rateWindowMs: number;
  /** All tries together. Default 2 h. */
  readonly totalMs: number;
  /** Tries in all, 1 or more. Default 3. */
  readonly tries: number;
  /** Before the second try; then doubled each time; plus up to half at random. Default 1 s. */
  readonly backoffMs: number;
  /** Upper limit for a server's Retry-After. Default 30 s. */
  readonly maxRetryAfterMs: number;
}

export const defaultLimits: DownloadLimits = {
  headersTimeoutMs: 20_000,
  idleTimeoutMs: 20_000,
  minBytesPerSecond: 8 * 1_024,
  rateWindowMs: 20_000,
  totalMs: 2 * 60 * 60 * 1_000,
  tries: 3,
  backoffMs: 1_000,
  maxRetryAfterMs: 30_000,
};

interface DownloadProgress {
  readonly receivedBytes: number;
  /** As declared by the server; undefined if it declared none. */
  readonly totalBytes: number | undefined;
}

export interface DownloadOptions {
  readonly url: string;
  /** The caller's own; sent to their origin alone. */
  readonly originHeaders?: OriginHeaders | undefined;
  /** Path of a new file; mode 0600, removed on failure. */
  readonly file: string;
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
  /** Called for every chunk. The count falls if the server makes the download start over. */
  readonly onProgress?: (progress: DownloadProgress) => void;
  /**
   * Awaited before writing: with the declared length, or for each further 64 MiB of a body without
   * one. An error that it throws ends the download and is passed on.
   */
  readonly makeRoom?: (bytes: number) => Promise<void>;
  readonly limits?: Partial<DownloadLimits>;
}

export interface Downloaded {
  readonly sizeBytes: number;
  /** The Content-Type header as sent; not verified. */
  readonly contentType: string | undefined;
  /** A bare, cleaned file name from Content-Disposition or the URL's path. */
  readonly filename: string | undefined;
  /** The URL after redirects. */
  readonly url: string;
  /** What further requests for it may carry: nothing once a redirect has left the origin. */
  readonly originHeaders?: OriginHeaders | undefined;
  /**
   * Whether the server did not say where it ends: a lost connection ends it, too. Default it did.
   */
  readonly isOpenEnded?: boolean;
}

/** The bytes on disk, and what is known of the whole file. */
interface Transfer {
  readonly file: FileHandle;
  receivedBytes: number;
  totalBytes: number | undefined;
  /** Reserved by `makeRoom`, over all tries. */
  roomBytes: number;
  /** For If-Range; undefined while the file cannot be continued. */
  validator: string | undefined;
}

/**
 * @param first the answer to an earlier request for the whole file; counts as the first try
 * @throws OutboundRefused, OutboundFailed; file system errors (EEXIST, ENOSPC) and errors of
 * `makeRoom` as they are; the reason of `signal` if it aborts
 */
export async function download(
  route: Route,
  options: DownloadOptions,
  first?: () => Promise<Answer>,
): Promise<Downloaded> {
  const limits = { ...defaultLimits, ...options.limits };
  const file = await open(options.file, 'wx', 0o600);
  const reason = () => new OutboundFailed('timeout', 'the download took too long', false);
  using limit = deadline(limits.totalMs, { signal: options.signal, reason });
  const { signal } = limit;
  const transfer: Transfer = {
    file,
    receivedBytes: 0,
    totalBytes: undefined,
    roomBytes: 0,
    validator: undefined,
  };
  try {
    let opened = first;
    const answer = await withTries(limits, signal, () => {
      const opening = opened?.();
      opened = undefined;
      return receive(route, options, limits, signal, transfer, opening);
    });
    await file.close();
    return {
      sizeBytes: transfer.receivedBytes,
      contentType: headerOf(answer.headers, 'content-type'),
      filename: sourceName(headerOf(answer.headers, 'content-disposition'), new URL(options.url), answer.url),
      url: answer.url.href,
      originHeaders: answer.originHeaders,
      isOpenEnded: transfer.totalBytes === undefined && isOpenEnded(answer.headers),
    };
  } catch (error) {
    await file.close().catch(() => {}); // The first error matters more.
    await rm(options.file, { force: true });
    throw error;
  }
}

/** Retries an attempt after retryable failures. @throws the last failure; the signal's reason */
export async function withTries<T>(
  limits: DownloadLimits,
  signal: AbortSignal,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof OutboundFailed) || !error.retryable || tried >= limits.tries) throw error;
      const backoffMs = limits.backoffMs * 2 ** (tried - 1) * (1 + Math.random() / 2);
      const askedMs = Math.min((error.retryAfterSeconds ?? 0) * 1_000, limits.maxRetryAfterMs);
      await pause(Math.max(backoffMs, askedMs), signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** One try: requests the missing part or the whole file, and writes it. */
async function receive(
  route: Route,
  options: DownloadOptions,
  limits: DownloadLimits,
  signal: AbortSignal,
  transfer: Transfer,
  opening?: Promise<Answer>,
): Promise<Answer> {
  const { validator, receivedBytes } = transfer;
  const { url, originHeaders } = options;
  const resume = validator !== undefined && receivedBytes > 0;
  const headers: Record<string, string> = resume
    ? { range: `bytes=${receivedBytes}-`, 'if-range': validator }
    : {};
  const answer = await (opening ?? get(route, { ...limits, url, originHeaders, headers, signal }));
  try {
    await beginWriting(transfer, answer, resume);
    if ((transfer.totalBytes ?? 0) > options.maxBytes) throw tooLarge();
    await makeRoom(transfer, transfer.totalBytes ?? 0, options);
  } catch (error) {
    discard(answer.body);
    throw error;
  }
  const bodyLimits = { ...limits, maxBytes: options.maxBytes - transfer.receivedBytes };
  const isWhole = (): boolean => transfer.receivedBytes === transfer.totalBytes;
  for await (const chunk of limitedBody(answer.body, bodyLimits, signal, isWhole)) {
    const endBytes = transfer.receivedBytes + chunk.length;
    if (endBytes > transfer.roomBytes) await makeRoom(transfer, transfer.roomBytes + STEP_BYTES, options);
    await writeAll(transfer.file, chunk, transfer.receivedBytes);
    transfer.receivedBytes = endBytes;
    options.onProgress?.({ receivedBytes: transfer.receivedBytes, totalBytes: transfer.totalBytes });
  }
  if (transfer.totalBytes !== undefined && !isWhole()) {
    // A file with too many bytes cannot be continued.
    if (transfer.receivedBytes > transfer.totalBytes) transfer.validator = undefined;
    throw new OutboundFailed('reset', 'the connection broke before the end', true);
  }
  return answer;
}

/** Room reserved at a time for a body without a length; larger than any chunk. */
const STEP_BYTES = 64 * 1024 * 1024;

async function makeRoom(transfer: Transfer, upToBytes: number, options: DownloadOptions): Promise<void> {
  const bytes = Math.min(upToBytes, options.maxBytes) - transfer.roomBytes;
  if (bytes <= 0) return;
  await options.makeRoom?.(bytes);
  transfer.roomBytes += bytes;
}

/** Finds out whether the body continues the file or starts over, and prepares the file. */
async function beginWriting(transfer: Transfer, answer: Answer, resume: boolean): Promise<void> {
  const { status, headers } = answer;
  if (resume && status === 206) {
    refuseEncoded(headers);
    const range = contentRangeOf(headers);
    // Some servers ignore If-Range: never append a part of another version (RFC 9110 §15.3.7.3).
    const sameVersion = isOfVersion(headers, transfer.validator);
    const sameFile = sameVersion && sameTotal(range?.totalBytes, transfer.totalBytes);
    if (range?.start === transfer.receivedBytes && sameFile) {
      transfer.totalBytes ??= range.totalBytes;
      return;
    }
    transfer.validator = undefined; // The next try requests the whole file.
    throw new OutboundFailed('protocol', 'the server resumed the file at another position', true);
  }
  // 416 after a break on the last byte of a body without a length: the requested range is empty.
  if (resume && status === 416) transfer.validator = undefined;
  if (status !== 200 && status !== 203) {
    const failure = statusFailure(answer);
    throw status === 416 && resume
      ? new OutboundFailed('protocol', failure.message, true, { status })
      : failure;
  }
  refuseEncoded(headers);
  await transfer.file.truncate(0);
  transfer.receivedBytes = 0;
  transfer.totalBytes = declaredLength(headerOf(headers, 'content-length'));
  transfer.validator = strongValidator(headers);
}

function sameTotal(a: number | undefined, b: number | undefined): boolean {
  return a === undefined || b === undefined || a === b;
}

function declaredLength(value: string | undefined): number | undefined {
  return value !== undefined && /^\d+$/.test(value) ? Number(value) : undefined;
}

/** A write may write fewer bytes than requested. */
async function writeAll(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    written += (await file.write(chunk, written, chunk.length - written, position + written)).bytesWritten;
  }
}
