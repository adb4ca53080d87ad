/** One POST to a webhook, one PUT to a service: no redirects, an answer of which little is read. */
import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import type { Readable } from 'node:stream';
import type { GuardedAgent } from './connector.ts';
import { deadlineOf } from './deadline.ts';
import { OutboundFailed, OutboundRefused } from './errors.ts';
import { discard, type Route, retryAfterSeconds } from './exchange.ts';
import { toOutboundError } from './failure.ts';
import { type Purpose, parseTarget } from './policy.ts';

export interface PostOptions {
  readonly url: string;
  /** Names in any case. Those that the connection itself needs (Host, Content-Length, …) are refused. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent byte for byte. */
  readonly body: string | Uint8Array;
  /** From the first look-up to the answer's headers. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface PutOptions extends Omit<PostOptions, 'body'> {
  /** Exactly `sizeBytes` of them: fewer or more break the request off. The caller destroys it. */
  readonly body: Readable;
  readonly sizeBytes: number;
}

export interface PostAnswer {
  /** Any status; a redirect is returned like every other. */
  readonly status: number;
  readonly latencyMs: number;
  readonly retryAfterSeconds?: number;
  /** The beginning of the body as text, at most 1,024 characters, control characters replaced by spaces. */
  readonly bodySnippet: string;
}

const MAX_ANSWER_BYTES = 16 * 1_024;
const SNIPPET_CHARACTERS = 1_024;

/** A caller's header of this name would change which server answers, or where the message ends. */
const connectionHeaders = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'expect',
  'te',
  'trailer',
  'proxy-authorization',
  'proxy-connection',
]);

/** One agent a protocol, so that a connection is never reused for the other. */
export type PostAgents = Readonly<Record<'http:' | 'https:', GuardedAgent>>;

/** @throws OutboundRefused, OutboundFailed; the reason of `signal` when that aborts */
export async function post(
  route: Omit<Route, 'dispatcher'> & { readonly agents: PostAgents },
  options: PostOptions,
): Promise<PostAnswer> {
  return send(route, 'webhook', options, async (url, headers, signal) => {
    const { protocol, hostname, host, port, pathname, search } = url;
    const isTls = protocol === 'https:';
    const body = Buffer.from(options.body);
    const sending = request({
      agent: route.agents[isTls ? 'https:' : 'http:'],
      protocol,
      method: 'POST',
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port || (isTls ? 443 : 80),
      path: pathname + search,
      headers: { host, ...headers, 'content-length': body.length },
      signal,
    }).end(body);
    const response: IncomingMessage = (await once(sending, 'response'))[0];
    sending.on('error', () => {});
    return { statusCode: response.statusCode ?? 0, headers: response.headers, body: response };
  });
}

/** @throws OutboundRefused, OutboundFailed; the reason of `signal` when that aborts */
export async function put(route: Route, options: PutOptions): Promise<PostAnswer> {
  const undici = await import('undici');
  return send(route, 'service', options, (url, headers, signal) =>
    undici.request(url, {
      dispatcher: route.dispatcher,
      method: 'PUT',
      headers: { ...headers, 'content-length': String(options.sizeBytes) },
      body: options.body,
      signal,
    }),
  );
}

interface RawAnswer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

async function send(
  route: Pick<Route, 'policy' | 'userAgent'>,
  purpose: Purpose,
  options: PostOptions | PutOptions,
  exchange: (url: URL, headers: Record<string, string>, signal: AbortSignal) => Promise<RawAnswer>,
): Promise<PostAnswer> {
  const { url } = parseTarget(options.url, purpose, route.policy);
  const headers = {
    'user-agent': route.userAgent,
    ...lowerCased(options.headers),
  };
  const tooLate = new OutboundFailed('timeout', 'the receiver took too long to answer', true);
  const deadline = deadlineOf(options.timeoutMs, tooLate, options.signal);
  const startedAt = performance.now();
  try {
    const answer = await exchange(url, headers, deadline.signal);
    const latencyMs = Math.round(performance.now() - startedAt);
    const retryAfter = retryAfterSeconds(answer.headers);
    return {
      status: answer.statusCode,
      latencyMs,
      ...(retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter }),
      bodySnippet: await snippet(answer.body),
    };
  } catch (error) {
    deadline.signal.throwIfAborted();
    throw toOutboundError(error);
  } finally {
    deadline.clear();
  }
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const forbidden = entries.find(([name]) => connectionHeaders.has(name));
  if (forbidden !== undefined) throw new OutboundRefused(`header ${forbidden[0]} is not for a caller to set`);
  return Object.fromEntries(entries);
}

/** The status is the answer: a body that breaks off or never ends takes nothing from it. */
async function snippet(body: Readable): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= MAX_ANSWER_BYTES) break;
    }
  } catch {
    // What came until then is kept.
  } finally {
    discard(body);
  }
  const text = Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString('utf8');
  return text
    .slice(0, SNIPPET_CHARACTERS)
    .toWellFormed()
    .replace(/\p{Cc}/gu, ' ');
}
