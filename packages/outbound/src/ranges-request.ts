/** A request for one or more ranges, and the check of its answer (RFC 9110 §14, §15.3.7). */
import { OutboundFailed } from './errors.ts';
import {
  type Answer,
  type BodyLimits,
  contentRangeOf,
  discard,
  get,
  headerOf,
  isOfVersion,
  limitedBody,
  type Route,
  refuseEncoded,
  statusFailure,
} from './exchange.ts';
import type { OriginHeaders } from './origin-headers.ts';
import { ByterangesReader, byterangesBoundary, multipartOverhead, type Piece } from './ranges-multipart.ts';
import { type ByteSpan, rangeHeader } from './ranges-spans.ts';

/** One version of a file, from its first answer. */
export interface RemoteFile {
  /** The URL after redirects. */
  readonly url: string;
  readonly originHeaders?: OriginHeaders | undefined;
  readonly sizeBytes: number;
  /** Strong, for If-Range. */
  readonly validator: string;
}

export interface RangeLimits extends Omit<BodyLimits, 'maxBytes'> {
  readonly headersTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** The server supports ranges, but not several in one answer. */
export class NoMultipleRanges extends Error {
  override readonly name = 'NoMultipleRanges';
}

interface RangeAnswer {
  /** Until the headers arrived. */
  readonly waitedSeconds: number;
  /** The requested bytes, in order of arrival; complete when the generator ends. */
  readonly pieces: AsyncGenerator<readonly Piece[]>;
}

/**
 * @throws NoMultipleRanges; OutboundRefused, OutboundFailed, of kind `protocol` if the file has
 * changed or the answer does not match; the reason of `signal`. The pieces throw the same.
 */
export async function requestRanges(
  route: Route,
  file: RemoteFile,
  spans: readonly ByteSpan[],
  limits: RangeLimits,
  signal: AbortSignal,
): Promise<RangeAnswer> {
  const begunAt = performance.now();
  const headers = { range: rangeHeader(spans), 'if-range': file.validator };
  const { url, originHeaders } = file;
  const answer = await get(route, { ...limits, url, originHeaders, headers, signal, keepAlive: true });
  const waitedSeconds = (performance.now() - begunAt) / 1_000;
  try {
    const boundary = requirePart(answer, file, spans);
    const pieces =
      boundary === undefined
        ? oneRange(answer, spans, limits, signal)
        : severalRanges(answer, new ByterangesReader(boundary, spans, file.sizeBytes), spans, limits, signal);
    return { waitedSeconds, pieces };
  } catch (error) {
    discard(answer.body);
    throw error;
  }
}

/** @returns the boundary of an answer with several parts; undefined if it is the range itself */
function requirePart(answer: Answer, file: RemoteFile, spans: readonly ByteSpan[]): string | undefined {
  const { status, headers } = answer;
  const isSame = isOfVersion(headers, file.validator);
  // RFC 9110 §14.2: a server may ignore Range or refuse many ranges; 200 may be another version.
  if (spans.length > 1 && (status === 416 || (status === 200 && isSame))) throw new NoMultipleRanges();
  if (status === 200 || (status === 206 && !isSame)) throw unexpected('the file has changed');
  if (status !== 206) throw statusFailure(answer);
  refuseEncoded(headers);
  const boundary = byterangesBoundary(headerOf(headers, 'content-type'));
  if (boundary !== undefined && spans.length > 1) return boundary;
  const range = contentRangeOf(headers);
  const [first, ...others] = spans;
  if (others.length > 0) throw new NoMultipleRanges();
  if (range?.start !== first?.start || range?.end !== first?.end || range?.totalBytes !== file.sizeBytes) {
    throw unexpected('another range than the one asked for');
  }
  return undefined;
}

async function* oneRange(
  { body }: Answer,
  [span = { start: 0, end: 0 }]: readonly ByteSpan[],
  limits: RangeLimits,
  signal: AbortSignal,
): AsyncGenerator<readonly Piece[]> {
  let { start } = span;
  const bodyLimits = { ...limits, maxBytes: span.end - start };
  for await (const bytes of limitedBody(body, bodyLimits, signal, () => start === span.end)) {
    yield [{ start, bytes }];
    start += bytes.length;
  }
  if (start < span.end) throw new OutboundFailed('reset', 'the connection broke before the end', true);
}

async function* severalRanges(
  { body }: Answer,
  reader: ByterangesReader,
  spans: readonly ByteSpan[],
  limits: RangeLimits,
  signal: AbortSignal,
): AsyncGenerator<readonly Piece[]> {
  const bytes = spans.reduce((sum, { start, end }) => sum + end - start, 0);
  const maxBytes = bytes + multipartOverhead(spans.length);
  const isWhole = (): boolean => reader.isWhole;
  for await (const chunk of limitedBody(body, { ...limits, maxBytes }, signal, isWhole)) {
    yield reader.push(chunk);
  }
  reader.end();
}

function unexpected(what: string): OutboundFailed {
  return new OutboundFailed('protocol', 'the server did not send the requested part', false, {
    cause: new Error(what),
  });
}
