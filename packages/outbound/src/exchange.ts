/**
 * One GET of an untrusted URL: its headers, and its body within limits. Redirects are followed by
 * hand: each one is a new URL that must pass all the rules.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { OutboundFailed, OutboundRefused, toBodyError, toOutboundError } from './errors.ts';
import { type OriginHeaders, stillAllowed } from './origin-headers.ts';
import { type Policy, parseTarget } from './policy.ts';

export interface Route {
  /** Always passed: the global dispatcher has no guard and follows proxy variables. */
  readonly dispatcher: Dispatcher;
  readonly policy: Policy;
  readonly userAgent: string;
}

/**
 * Awaited before each request, also those of redirects and of further tries.
 * @returns called once the answer has ended
 * @throws what then ends the fetch
 */
export type Admit = (request: {
  readonly hostname: string;
  readonly isRedirect: boolean;
  readonly signal: AbortSignal;
}) => Promise<() => void>;

interface GetOptions {
  readonly url: string;
  /** Made by this module's callers: none is secret, so a redirect may carry them anywhere. */
  readonly headers: Readonly<Record<string, string>>;
  /** The caller's: for requests to their origin, until a redirect leaves it. */
  readonly originHeaders?: OriginHeaders | undefined;
  readonly headersTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal;
  /** Default: a new connection for each request, since most downloads use one up. */
  readonly keepAlive?: boolean;
  /** Default: none waits. */
  readonly admit?: Admit | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
  /** The URL after redirects. */
  readonly url: URL;
  /** What further requests to that URL may carry. */
  readonly originHeaders?: OriginHeaders | undefined;
}

const MAX_REDIRECTS = 5;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/**
 * @returns the first answer that is no redirect, with its body unread.
 * @throws OutboundRefused, OutboundFailed; the reason of `signal` if it aborts
 */
export async function get(route: Route, options: GetOptions): Promise<Answer> {
  let target = parseTarget(options.url, 'source', route.policy);
  let originHeaders = stillAllowed(options.originHeaders, target.url);
  for (let redirects = 0; ; redirects++) {
    const leave = await options.admit?.({
      hostname: target.hostname,
      isRedirect: redirects > 0,
      signal: options.signal,
    });
    const answer = await getOnce(route, target.url, { ...options, originHeaders }, leave);
    const location = headerOf(answer.headers, 'location');
    if (!redirectStatuses.has(answer.status) || location === undefined) return answer;
    discard(answer.body);
    if (redirects === MAX_REDIRECTS) {
      throw new OutboundFailed('redirects', `the server redirects more than ${MAX_REDIRECTS} times`, false);
    }
    const next = parseTarget(location, 'source', route.policy, target.url);
    if (target.url.protocol === 'https:' && next.url.protocol === 'http:') {
      throw new OutboundRefused('redirect from https to http');
    }
    target = next;
    originHeaders = stillAllowed(originHeaders, next.url);
  }
}

async function getOnce(
  route: Route,
  url: URL,
  options: GetOptions,
  leave: () => void = () => {},
): Promise<Answer> {
  try {
    const { request } = await import('undici');
    const { statusCode, headers, body } = await request(url, {
      dispatcher: route.dispatcher,
      method: 'GET',
      headers: {
        'user-agent': route.userAgent,
        accept: '*/*',
        ...options.originHeaders?.values,
        // Compressed bodies are never unpacked here, so none can expand.
        'accept-encoding': 'identity',
        ...options.headers,
      },
      headersTimeout: options.headersTimeoutMs,
      bodyTimeout: options.idleTimeoutMs,
      reset: options.keepAlive !== true,
      signal: options.signal,
    });
    body.once('close', leave);
    return { status: statusCode, headers, body, url, originHeaders: options.originHeaders };
  } catch (error) {
    leave();
    options.signal.throwIfAborted();
    throw toOutboundError(error);
  }
}

/** Drops an unread body with its connection. */
export function discard(body: Readable): void {
  body.on('error', () => {});
  body.destroy();
}

/** The header's value; the first if there are several. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Whether the answer does not say where its body ends: a lost connection ends it, too. */
export function isOpenEnded(headers: IncomingHttpHeaders): boolean {
  return headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
}

export function isEncoded(headers: IncomingHttpHeaders): boolean {
  return !['', 'identity'].includes(headerOf(headers, 'content-encoding')?.toLowerCase() ?? '');
}

/** Refuses compressed bodies, since a few bytes can expand without limit. */
export function refuseEncoded(headers: IncomingHttpHeaders): void {
  if (!isEncoded(headers)) return;
  throw new OutboundFailed('encoding', 'the server sends the file compressed although asked not to', false);
}

/** Retry-After in seconds from now (RFC 9110 §10.2.3: seconds or a date). */
export function retryAfterSeconds(headers: IncomingHttpHeaders): number | undefined {
  const value = headerOf(headers, 'retry-after');
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  // Date.parse alone would read "-5" as a year.
  const at = value.endsWith(' GMT') ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000));
}

/** The answer as a failure: 5xx, 408 and 429 are retryable, other statuses are not. */
export function statusFailure({ status, headers }: Pick<Answer, 'status' | 'headers'>): OutboundFailed {
  const retryable = status >= 500 || status === 408 || status === 429;
  return new OutboundFailed('status', `the server answered with status ${status}`, retryable, {
    status,
    retryAfterSeconds: retryAfterSeconds(headers),
  });
}

// Continuing a download (RFC 9110 §13.1.5, §14) if the file is still the same.

/** @returns the If-Range value: a strong ETag, or a strong Last-Modified; undefined: none. */
export function strongValidator(headers: IncomingHttpHeaders): string | undefined {
  const etag = headerOf(headers, 'etag');
  if (etag !== undefined) return /^"[\x21\x23-\x7e]*"$/.test(etag) ? etag : undefined;
  const lastModified = headerOf(headers, 'last-modified');
  if (lastModified === undefined) return undefined;
  // RFC 9110 §8.8.2.2: a date is strong if the answer was made at least a second after the change.
  const ageMs = Date.parse(headerOf(headers, 'date') ?? '') - Date.parse(lastModified);
  return ageMs >= 1_000 ? lastModified : undefined;
}

/** Whether a part may belong to the version with this validator; one without a validator may. */
export function isOfVersion(headers: IncomingHttpHeaders, validator: string | undefined): boolean {
  const named = headerOf(headers, validator?.startsWith('"') ? 'etag' : 'last-modified');
  return named === undefined || named === validator;
}

interface ContentRange {
  readonly start: number;
  /** Exclusive, unlike in the header. */
  readonly end: number;
  readonly totalBytes: number | undefined;
}

/** Content-Range: `bytes 100-199/200` or `bytes 100-199/*`; undefined for anything else. */
export function contentRangeOf(headers: IncomingHttpHeaders): ContentRange | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(headerOf(headers, 'content-range') ?? '');
  if (match === null) return undefined;
  const totalBytes = match[3] === '*' ? undefined : Number(match[3]);
  return { start: Number(match[1]), end: Number(match[2]) + 1, totalBytes };
}

// A body that is cut off if it grows too large or arrives too slowly.

export interface BodyLimits {
  /** Counted while reading; the declared length is not trusted. */
  readonly maxBytes: number;
  /** Averaged over `rateWindowMs`; unlike the idle timeout, it also stops a sender that drips. */
  readonly minBytesPerSecond: number;
  readonly rateWindowMs: number;
}

/**
 * @param signal aborts the reading with its reason
 * @param isWhole whether all declared bytes were read: later socket errors do not matter then
 * @throws OutboundFailed of kind `too-large`, `too-slow`, `timeout` or `reset`
 */
export async function* limitedBody(
  body: Readable,
  limits: BodyLimits,
  signal: AbortSignal,
  isWhole: () => boolean = () => false,
): AsyncGenerator<Uint8Array> {
  const reading = { receivedBytes: 0, takenAtMs: Number.POSITIVE_INFINITY };
  const watch = watchRate(body, limits, reading);
  try {
    for await (const chunk of body) {
      reading.receivedBytes += chunk.length;
      if (reading.receivedBytes > limits.maxBytes) throw tooLarge();
      reading.takenAtMs = performance.now();
      yield chunk;
      reading.takenAtMs = Number.POSITIVE_INFINITY;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!isWhole()) throw toBodyError(error);
  } finally {
    clearInterval(watch);
    discard(body);
  }
}

export function tooLarge(): OutboundFailed {
  return new OutboundFailed('too-large', 'the file is larger than allowed', false);
}

const SAMPLES_PER_WINDOW = 10;

interface Reading {
  receivedBytes: number;
  /** When the reader got the current chunk; infinite while it waits for the sender. */
  takenAtMs: number;
}

function watchRate(body: Readable, limits: BodyLimits, reading: Reading): NodeJS.Timeout {
  let samples = [0];
  const minBytesPerWindow = (limits.minBytesPerSecond * limits.rateWindowMs) / 1_000;
  const everyMs = limits.rateWindowMs / SAMPLES_PER_WINDOW;
  return setInterval(() => {
    const now = reading.receivedBytes;
    // The reader was busy since the last sample, so the sender is not to blame.
    if (performance.now() - reading.takenAtMs >= everyMs) samples = [];
    const oldest = samples.length === SAMPLES_PER_WINDOW ? samples.shift() : undefined;
    samples.push(now);
    if (oldest !== undefined && now - oldest < minBytesPerWindow) {
      body.destroy(new OutboundFailed('too-slow', 'the server sends too slowly', true));
    }
  }, everyMs);
}
