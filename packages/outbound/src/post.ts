/** One POST to a webhook: no redirects, an answer of which little is read. `put.ts` sends files the same way. */
import { once } from 'node:events';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import type { Readable } from 'node:stream';
import { type Deadline, deadline } from 'soundpost-base/deadline';
import type { GuardedAgent } from './connector.ts';
import { OutboundFailed, OutboundRefused, toOutboundError } from './errors.ts';
import { discard, type Route, retryAfterSeconds } from './exchange.ts';
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
type Agents = Readonly<Record<'http:' | 'https:', GuardedAgent>>;

export interface SendRoute extends Pick<Route, 'policy' | 'userAgent'> {
  readonly agents: Agents;
}

/** @throws OutboundRefused, OutboundFailed; the reason of `signal` when that aborts */
export async function post(route: SendRoute, options: PostOptions): Promise<PostAnswer> {
  return send(route, 'webhook', options, async (url, headers, { signal }) => {
    const body = Buffer.from(options.body);
    const sending = request({
      ...addressed(url, route.agents),
      method: 'POST',
      headers: { host: url.host, ...headers, 'content-length': body.length },
      signal,
    }).end(body);
    const response: IncomingMessage = (await once(sending, 'response'))[0];
    sending.on('error', () => {});
    return response;
  });
}

/** Where a request of Node's client goes. */
export function addressed(url: URL, agents: Agents): RequestOptions {
  const { protocol, hostname, port, pathname, search } = url;
  const isTls = protocol === 'https:';
  return {
    agent: agents[isTls ? 'https:' : 'http:'],
    protocol,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port || (isTls ? 443 : 80),
    path: pathname + search,
  };
}

/** One exchange with a receiver. @throws as {@link post} */
export async function send(
  route: SendRoute,
  purpose: Purpose,
  options: Omit<PostOptions, 'body'>,
  exchange: (url: URL, headers: Record<string, string>, limit: Deadline) => Promise<IncomingMessage>,
): Promise<PostAnswer> {
  const { url } = parseTarget(options.url, purpose, route.policy);
  const headers = {
    'user-agent': route.userAgent,
    ...lowerCased(options.headers),
  };
  const reason = () => new OutboundFailed('timeout', 'the receiver took too long to answer', true);
  using limit = deadline(options.timeoutMs, { signal: options.signal, reason });
  const startedAt = performance.now();
  try {
    const answer = await exchange(url, headers, limit);
    const latencyMs = Math.round(performance.now() - startedAt);
    const retryAfter = retryAfterSeconds(answer.headers);
    return {
      status: answer.statusCode ?? 0,
      latencyMs,
      ...(retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter }),
      bodySnippet: await snippet(answer),
    };
  } catch (error) {
    limit.signal.throwIfAborted();
    throw toOutboundError(error);
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
