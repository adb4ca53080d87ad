/** One POST to a webhook, one PUT to a service: no redirects, an answer of which little is read. */
import type { Readable } from 'node:stream';
import { type Dispatcher, request } from 'undici';
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

/** @throws OutboundRefused, OutboundFailed; the reason of `signal` when that aborts */
export async function post(route: Route, options: PostOptions): Promise<PostAnswer> {
  return send(route, 'webhook', 'POST', options);
}

/** @throws OutboundRefused, OutboundFailed; the reason of `signal` when that aborts */
export async function put(route: Route, options: PutOptions): Promise<PostAnswer> {
  return send(route, 'service', 'PUT', options, { 'content-length': String(options.sizeBytes) });
}

async function send(
  route: Route,
  purpose: Purpose,
  method: 'POST' | 'PUT',
  options: PostOptions | PutOptions,
  ownHeaders: Readonly<Record<string, string>> = {},
): Promise<PostAnswer> {
  const { url } = parseTarget(options.url, purpose, route.policy);
  const headers = {
    'user-agent': route.userAgent,
    ...lowerCased(options.headers),
    ...ownHeaders,
  };
  const tooLate = new OutboundFailed('timeout', 'the receiver took too long to answer', true);
  const deadline = deadlineOf(options.timeoutMs, tooLate, options.signal);
  const startedAt = performance.now();
  try {
    const answer = await request(url, {
      dispatcher: route.dispatcher,
      method,
      headers,
      body: options.body,
      signal: deadline.signal,
    });
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
async function snippet(body: Dispatcher.ResponseData['body']): Promise<string> {
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
