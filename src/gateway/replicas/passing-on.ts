/** One request passed on to the replica that has its instance: body and answer as streams, the caller's end as ours. */
import { request as askHttp, Agent as HttpAgent, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as askHttps, Agent as HttpsAgent } from 'node:https';
import { pipeline } from 'node:stream';
import type { Request, Response } from 'express';

export interface Destination {
  /** Base address of the replica, without a slash at the end. */
  readonly url: string;
  /** Besides those of the request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Asked now and then: whether the replica still has the instance. */
  readonly isRight: () => Promise<boolean>;
}

/**
 * - `answered`: the caller has an answer, or is gone.
 * - `unreachable`: nobody has heard of the request, and its body is untouched.
 * - `lost`: nobody knows what became of it.
 */
export type Outcome = 'answered' | 'unreachable' | 'lost';

const CONNECT_TIMEOUT_MS = 2000;
const LOOK_EVERY_MS = 2000;

/**
 * A connection each: one that was kept alive may be closed by the other side at the very moment of a request, and then nobody
 * knows whether it was heard.
 */
const agents = {
  'http:': new HttpAgent({ keepAlive: false }),
  'https:': new HttpsAgent({ keepAlive: false }),
};

/** RFC 9110, 7.6.1, which adds what `Connection` names, and what the connection itself says. */
const hopByHop = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade', 'host', 'expect'],
]);

export function passOn(request: Request, response: Response, destination: Destination): Promise<Outcome> {
  if (response.destroyed) {
    return Promise.resolve('answered');
  }
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  let isConnected = false;
  let hasAnswer = false;
  const outgoing = ask(request, destination);
  const connecting = setTimeout(() => outgoing.destroy(), CONNECT_TIMEOUT_MS);
  const looking = setInterval(async () => {
    // A replica that was stopped keeps its connections, and would never answer.
    const isRight = await destination.isRight().catch(() => true);
    if (!isRight && !hasAnswer) outgoing.destroy();
  }, LOOK_EVERY_MS);
  const leave = (): void => {
    outgoing.destroy();
    resolve('answered');
  };
  response.once('close', leave);
  promise.then(() => {
    clearTimeout(connecting);
    clearInterval(looking);
    response.off('close', leave);
  });
  outgoing.once('socket', (socket) => {
    socket.once(outgoing.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
      isConnected = true;
      clearTimeout(connecting);
      request.pipe(outgoing);
    });
  });
  // What follows from it is told by `close`.
  outgoing.on('error', () => undefined);
  outgoing.once('close', () => {
    request.unpipe(outgoing);
    // Nobody reads the rest of it any more, and what comes next on the caller's connection lies behind it.
    if (isConnected) request.resume();
    if (!hasAnswer) resolve(isConnected ? 'lost' : 'unreachable');
  });
  outgoing.once('response', (incoming) => {
    hasAnswer = true;
    clearInterval(looking);
    response.writeHead(incoming.statusCode ?? 502, endToEnd(incoming.headers));
    // An answer that breaks off breaks off here too, so that nobody takes it for a whole one.
    pipeline(incoming, response, () => resolve('answered'));
  });
  return promise;
}

function ask(request: Request, { url, headers }: Destination): ReturnType<typeof askHttp> {
  const { protocol, hostname, port, pathname } = new URL(url);
  const isChunked = request.headers['transfer-encoding'] !== undefined;
  const options: RequestOptions = {
    protocol,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port,
    method: request.method,
    // Never resolved against the address: a path of two slashes would name another host.
    path: `${pathname.replace(/\/$/, '')}${request.originalUrl}`,
    headers: {
      ...endToEnd(request.headers),
      ...(isChunked ? { 'transfer-encoding': 'chunked' } : {}),
      ...headers,
    },
  };
  return protocol === 'https:'
    ? askHttps({ ...options, agent: agents['https:'] })
    : askHttp({ ...options, agent: agents['http:'] });
}

function endToEnd(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const named = new Set(headers.connection?.split(',').map((name) => name.trim().toLowerCase()));
  // Without its length the body would be read as the next request.
  named.delete('content-length');
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !named.has(name)),
  );
}
