/** One GET, redirects followed by hand: each hop is a new URL from a stranger and goes through all the rules again. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { OutboundFailed, OutboundRefused, toOutboundError } from './errors.ts';
import { type Policy, parseTarget } from './policy.ts';

export interface Route {
  /** Always handed over: the global dispatcher has no guard and follows proxy variables. */
  readonly dispatcher: Dispatcher;
  readonly policy: Policy;
  readonly userAgent: string;
}

interface GetOptions {
  readonly url: string;
  /** Only what this module's own callers make: nothing here is a secret, so all of it may cross to another origin. */
  readonly headers: Readonly<Record<string, string>>;
  readonly headersTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal;
  /** Default: a connection of its own for each request, as most downloads are broken off or use theirs up. */
  readonly keepAlive?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
  /** Where the last redirect led. */
  readonly url: URL;
}

const MAX_REDIRECTS = 5;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/**
 * @returns the first answer that is no redirect, with its body unread.
 * @throws OutboundRefused, OutboundFailed; the reason of `signal` when that aborts
 */
export async function get(route: Route, options: GetOptions): Promise<Answer> {
  let target = parseTarget(options.url, 'source', route.policy);
  for (let redirects = 0; ; redirects++) {
    const answer = await getOnce(route, target.url, options);
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
  }
}

async function getOnce(route: Route, url: URL, options: GetOptions): Promise<Answer> {
  try {
    const { request } = await import('undici');
    const { statusCode, headers, body } = await request(url, {
      dispatcher: route.dispatcher,
      method: 'GET',
      // Identity: nothing here unpacks a compressed body, so none can grow.
      headers: {
        'user-agent': route.userAgent,
        accept: '*/*',
        'accept-encoding': 'identity',
        ...options.headers,
      },
      headersTimeout: options.headersTimeoutMs,
      bodyTimeout: options.idleTimeoutMs,
      reset: options.keepAlive !== true,
      signal: options.signal,
    });
    return { status: statusCode, headers, body, url };
  } catch (error) {
    options.signal.throwIfAborted();
    throw toOutboundError(error);
  }
}

/** Drops a body that nobody reads, and its connection. */
export function discard(body: Readable): void {
  body.on('error', () => {});
  body.destroy();
}

/** The header's value, the first one where the server sent several. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Packed bytes are refused, not unpacked: a few of them can become any number. */
export function refuseEncoded(headers: IncomingHttpHeaders): void {
  const encoding = headerOf(headers, 'content-encoding')?.toLowerCase() || 'identity';
  if (encoding === 'identity') return;
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

/** The answer as a failure: 5xx, 408 and 429 may pass, other statuses will not. */
export function statusFailure({ status, headers }: Pick<Answer, 'status' | 'headers'>): OutboundFailed {
  const retryable = status >= 500 || status === 408 || status === 429;
  return new OutboundFailed('status', `the server answered with status ${status}`, retryable, {
    status,
    retryAfterSeconds: retryAfterSeconds(headers),
  });
}
