/**
 * Fetches without files: the pieces of a source of many files, such as the segments of a stream,
 * over a few kept-alive connections; and small files.
 */
import { deadline } from 'soundpost-base/deadline';
import { type DownloadLimits, defaultLimits, withTries } from './download.ts';
import { OutboundFailed } from './errors.ts';
import {
  type Admit,
  type Answer,
  contentRangeOf,
  discard,
  get,
  isOpenEnded,
  limitedBody,
  type Route,
  refuseEncoded,
  statusFailure,
  tooLarge,
} from './exchange.ts';
import type { OriginHeaders } from './origin-headers.ts';
import { type ByteSpan, rangeHeader } from './ranges-spans.ts';

interface PieceRequest {
  /** Absolute. */
  readonly url: string;
  /** Default: the whole file. */
  readonly span?: ByteSpan | undefined;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Default: no request waits. */
  readonly admit?: Admit | undefined;
}

interface PieceAnswer {
  /** The URL after redirects. */
  readonly url: string;
  /**
   * Whether the server did not say where it ends: a lost connection ends it, too. Default it did.
   */
  readonly isOpenEnded?: boolean;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * @param take reads the bytes. It is called again, with all bytes, after a retryable failure
 * @throws OutboundRefused, OutboundFailed; what `take` throws; the signal's reason
 */
export type FetchPiece = <T>(request: PieceRequest, take: (answer: PieceAnswer) => Promise<T>) => Promise<T>;

export interface PiecesOptions {
  /** For all pieces together, including failed attempts. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** The caller's: for the pieces at their origin. */
  readonly originHeaders?: OriginHeaders | undefined;
  readonly limits?: Partial<DownloadLimits>;
}

/** `limits.totalMs` limits the whole of `run`. @throws what `run` throws */
export async function fetchPieces<T>(
  route: Route,
  options: PiecesOptions,
  run: (fetch: FetchPiece) => Promise<T>,
): Promise<T> {
  const limits = { ...defaultLimits, ...options.limits };
  const reason = () => new OutboundFailed('timeout', 'the download took too long', false);
  using limit = deadline(limits.totalMs, { signal: options.signal, reason });
  let receivedBytes = 0;
  const counted = async function* (body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      receivedBytes += chunk.length;
      if (receivedBytes > options.maxBytes) throw tooLarge();
      yield chunk;
    }
  };
  return await run((request, take) => {
    const signal = AbortSignal.any([limit.signal, request.signal]);
    return withTries(limits, signal, async () => {
      const { url, span, admit } = request;
      const headers: Record<string, string> = span === undefined ? {} : { range: rangeHeader([span]) };
      const { originHeaders } = options;
      const asked = { ...limits, url, originHeaders, headers, signal, keepAlive: true, admit };
      const answer = await get(route, asked);
      try {
        requirePiece(answer, span);
        const body = limitedBody(answer.body, { ...limits, maxBytes: request.maxBytes }, signal);
        const bytes = counted(whole(body, span));
        return await take({ url: answer.url.href, isOpenEnded: isOpenEnded(answer.headers), bytes });
      } finally {
        discard(answer.body);
      }
    });
  });
}

function requirePiece(answer: Answer, span: ByteSpan | undefined): void {
  const { status, headers } = answer;
  if (status !== 200 && status !== 206) throw statusFailure(answer);
  refuseEncoded(headers);
  const range = status === 206 ? contentRangeOf(headers) : undefined;
  // A server without ranges would send the whole file for each of its segments.
  if (range?.start !== span?.start || range?.end !== span?.end) {
    throw new OutboundFailed('protocol', 'the server did not send the requested part', false);
  }
}

async function* whole(
  body: AsyncIterable<Uint8Array>,
  span: ByteSpan | undefined,
): AsyncGenerator<Uint8Array> {
  let receivedBytes = 0;
  for await (const chunk of body) {
    receivedBytes += chunk.length;
    yield chunk;
  }
  if (span !== undefined && receivedBytes !== span.end - span.start) {
    throw new OutboundFailed('reset', 'the connection broke before the end', true);
  }
}

export interface FetchBytesOptions {
  readonly url: string;
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
}

const SMALL_TIMEOUT_MS = 60_000;
const smallLimits = {
  headersTimeoutMs: 15_000,
  idleTimeoutMs: 20_000,
  minBytesPerSecond: 1_024,
  rateWindowMs: 10_000,
};

/** One try. @throws OutboundRefused, OutboundFailed; the reason of `signal` if it aborts */
export async function fetchBytes(
  route: Route,
  { url, maxBytes, signal }: FetchBytesOptions,
): Promise<Uint8Array> {
  const reason = () => new OutboundFailed('timeout', 'the server took too long', true);
  using limit = deadline(SMALL_TIMEOUT_MS, { signal, reason });
  const answer = await get(route, { ...smallLimits, url, headers: {}, signal: limit.signal });
  try {
    if (answer.status !== 200) throw statusFailure(answer);
    refuseEncoded(answer.headers);
  } catch (error) {
    discard(answer.body);
    throw error;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of limitedBody(answer.body, { ...smallLimits, maxBytes }, limit.signal))
    chunks.push(chunk);
  return Buffer.concat(chunks);
}
