/**
 * One POST to a webhook, or one PUT of a file of any size. Redirects are not followed, and only a
 * little of the answer is read. The answer to a PUT may come before the whole file is sent.
 */
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import type { Readable } from 'node:stream';
import { type Deadline, deadline } from 'soundpost-base/deadline';
import { request } from 'soundpost-base/node-http';
import type { GuardedAgent } from './connector.ts';
import { OutboundFailed, OutboundRefused, toOutboundError } from './errors.ts';
import { discard, type Route, retryAfterSeconds } from './exchange.ts';
import { type Purpose, parseTarget } from './policy.ts';

export interface PostOptions {
  readonly url: string;
  /** Names in any case. Those that the connection needs (Host, Content-Length, …) are refused. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent byte for byte. */
  readonly body: string | Uint8Array;
  /** From the name lookup to the answer's headers. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface PostAnswer {
  /** Any status, including redirects. */
  readonly status: number;
  readonly latencyMs: number;
  readonly retryAfterSeconds?: number;
  /** Start of the body as text: at most 1,024 characters, control characters replaced by spaces. */
  readonly bodySnippet: string;
}

const MAX_ANSWER_BYTES = 16 * 1_024;
const SNIPPET_CHARACTERS = 1_024;

/** Set by a caller, these would change which server answers, or where the message ends. */
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

interface SendRoute extends Pick<Route, 'policy' | 'userAgent'> {
  /** One per protocol, so that a connection is never reused for the other. */
  readonly agents: Readonly<Record<'http:' | 'https:', GuardedAgent>>;
}

/** @throws OutboundRefused, OutboundFailed; the reason of `signal` if it aborts */
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

/** Target options for Node's client. */
function addressed(url: URL, agents: SendRoute['agents']): RequestOptions {
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
async function send(
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

/** A body that breaks off or never ends does not matter: the status is the answer. */
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
    // Keep what has arrived.
  } finally {
    discard(body);
  }
  const text = Buffer.concat(chunks).toString('utf8', 0, MAX_ANSWER_BYTES).slice(0, SNIPPET_CHARACTERS);
  return text.toWellFormed().replace(/\p{Cc}/gu, ' ');
}

export interface PutOptions extends Omit<PostOptions, 'body' | 'timeoutMs'> {
  /** `service`: of an account that the operator set up. `destination`: chosen by a caller. */
  readonly purpose: 'service' | 'destination';
  /** Must have exactly `sizeBytes`, otherwise the request fails. Destroyed at the end. */
  readonly body: Readable;
  readonly sizeBytes: number;
  /** Limit until the receiver accepts the next bytes, and from the last ones to its headers. */
  readonly idleMs: number;
}

/** Like curl: a smaller file is sent before an answer could come. */
const ASK_FIRST_BYTES = 1024 * 1024;
/** A server without `Expect` support says nothing (RFC 9110, 10.1.1); curl waits as long. */
const ASK_FIRST_MS = 1_000;
const EXPECTATION_FAILED = 417;

/** @throws OutboundRefused, OutboundFailed; the error of `body`; the abort reason of `signal` */
export async function put(route: SendRoute, options: PutOptions): Promise<PostAnswer> {
  const { purpose, body, sizeBytes, idleMs, ...rest } = options;
  const attempt = (asksFirst: boolean): Promise<PostAnswer> =>
    send(route, purpose, { ...rest, timeoutMs: idleMs }, (url, headers, limit) => {
      const sending = request({
        ...addressed(url, route.agents),
        method: 'PUT',
        headers: {
          host: url.host,
          ...headers,
          'content-length': sizeBytes,
          // Reusing a connection that the server is about to close would cost a try.
          connection: 'close',
          ...(asksFirst && { expect: '100-continue' }),
        },
        signal: limit.signal,
      });
      return exchange(sending, options, asksFirst, limit);
    });
  try {
    const asksFirst = sizeBytes >= ASK_FIRST_BYTES;
    const answer = await attempt(asksFirst);
    const isMisunderstood = asksFirst && answer.status === EXPECTATION_FAILED && !body.readableDidRead;
    return isMisunderstood ? await attempt(false) : answer;
  } catch (error) {
    throw body.errored ?? error;
  } finally {
    body.on('error', () => {}).destroy();
  }
}

async function exchange(
  sending: ClientRequest,
  { body, sizeBytes }: PutOptions,
  asksFirst: boolean,
  limit: Deadline,
): Promise<IncomingMessage> {
  const over = new AbortController();
  const response = once(sending, 'response').then(([answer]: IncomingMessage[]) => answer as IncomingMessage);
  // After an early 2xx the receiver still reads the rest; others end the sending (RFC 9112, 9.6).
  response.then(
    ({ statusCode = 0 }) => statusCode >= 300 && over.abort(),
    () => over.abort(),
  );
  sending.on('error', () => {});
  const stop = AbortSignal.any([limit.signal, over.signal]);
  try {
    if (asksFirst) await goAhead(sending, stop);
    const sentBytes = stop.aborted ? 0 : await sendBody(sending, body, sizeBytes, limit, stop);
    limit.signal.throwIfAborted();
    if (!stop.aborted) {
      if (sentBytes !== sizeBytes) {
        throw new OutboundFailed('protocol', 'the file does not have its declared length', false);
      }
      sending.end();
    }
    return await response;
  } catch (error) {
    sending.destroy();
    throw error;
  }
}

/** Sends only the head first, so that an answer can come before the file. */
async function goAhead(sending: ClientRequest, stop: AbortSignal): Promise<void> {
  sending.flushHeaders();
  using limit = deadline(ASK_FIRST_MS, { signal: stop });
  await once(sending, 'continue', { signal: limit.signal }).catch(() => undefined);
}

/** @returns how many bytes it read, which may be too many. */
async function sendBody(
  sending: ClientRequest,
  body: Readable,
  sizeBytes: number,
  limit: Deadline,
  stop: AbortSignal,
): Promise<number> {
  let sentBytes = 0;
  // Not destroyed when the loop ends early: its own error must be the one reported.
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    sentBytes += chunk.length;
    if (stop.aborted || sentBytes > sizeBytes) break;
    if (!sending.write(chunk)) await once(sending, 'drain', { signal: stop }).catch(() => undefined);
    if (stop.aborted) break;
    limit.renew();
  }
  return sentBytes;
}
