/**
 * The HTTP server of the API, the gateway and the workers' health. It limits the time and memory of
 * each connection and of all together (RFC 9110, 15.5.9; CWE-400), here and nowhere else.
 */

import { once } from 'node:events';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { createServer } from 'soundpost-base/node-http';
import { RequestBudget } from '../redis/request-budget.ts';
import { SlowBodies } from './slow-bodies.ts';
import { endUnreadable } from './unreadable.ts';
import type { Watched } from './watched.ts';

type HttpLimits = ConstructorParameters<typeof SlowBodies>[0] & {
  /** From the connection, or the end of the previous answer, to the last header. */
  readonly headersTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** No data in either direction: an unread download, a missing answer. */
  readonly silenceTimeoutMs: number;
  readonly maxHeaderBytes: number;
  readonly maxHeaders: number;
  /** Requests of one connection that await answers. */
  readonly maxPipelined: number;
  /** Further connections are closed at once. */
  readonly maxConnections: number;
  /** Interval between checks for timeouts. */
  readonly lookEveryMs: number;
};

export const httpLimits: HttpLimits = {
  headersTimeoutMs: 15_000,
  keepAliveTimeoutMs: 5000,
  silenceTimeoutMs: 5 * 60_000,
  maxHeaderBytes: 16 * 1024,
  maxHeaders: 200,
  maxPipelined: 32,
  maxConnections: 5000,
  lookEveryMs: 1000,
  bodyWindowMs: 30_000,
  minBodyBytesPerWindow: 30 * 1024,
  lingerMs: 10_000,
  lingerBytes: 32 * 1024 * 1024,
};

const MAX_RESPONSE_LISTENERS = 20;

export interface Listener {
  readonly address: AddressInfo;
  /**
   * Stops listening. A connection ends with its current or next answer, an idle one when its
   * keep-alive time is over, and every one after `graceMs`.
   */
  close(graceMs: number): Promise<void>;
}

/**
 * Rejects when the port is taken.
 * @param port 0 takes a free one
 * @param handlerFor makes the handler once the address is known; no request comes before
 */
export async function listen(
  host: string,
  port: number,
  handlerFor: (address: AddressInfo) => RequestListener | Watched,
  limits: HttpLimits = httpLimits,
): Promise<Listener> {
  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    // Uploads may take hours; SlowBodies limits how slow a body may be.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.lookEveryMs,
    maxHeaderSize: limits.maxHeaderBytes,
    requireHostHeader: true,
    insecureHTTPParser: false,
  });
  server.maxConnections = limits.maxConnections;
  // Node drops headers beyond the limit silently; one more lets us detect that.
  server.maxHeadersCount = limits.maxHeaders + 1;
  server.timeout = limits.silenceTimeoutMs;
  const slowBodies = new SlowBodies(limits);
  const orderly = new OrderlyClose(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const handler = handlerFor(address);
  const { handle, ended } = typeof handler === 'function' ? { handle: handler } : handler;
  const waiting = new WeakMap<object, number>();
  endUnreadable(server, limits);
  server.on('request', (request, response) => {
    const { socket, url = '' } = request;
    const atMs = performance.now();
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    if (count > limits.maxPipelined) {
      socket.destroy();
      return;
    }
    // A pipeline adds seven listeners, other layers more; node warns from eleven on.
    response.setMaxListeners(MAX_RESPONSE_LISTENERS);
    const budget = new RequestBudget();
    // One listener for all: each further one costs every request microseconds and memory.
    response.once('close', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      orderly.forget(response);
      budget.end();
      ended?.(request, response, { url, atMs });
    });
    slowBodies.watch(request, response);
    if (request.rawHeaders.length > limits.maxHeaders * 2) {
      response.writeHead(431, { connection: 'close' }).end();
      return;
    }
    if (!isHostValid(request)) {
      response.writeHead(400, { connection: 'close' }).end();
      return;
    }
    orderly.note(response);
    budget.run(() => handle(request, response));
  });
  const looking = setInterval(() => slowBodies.look(), limits.lookEveryMs).unref();
  return {
    address,
    async close(graceMs) {
      await orderly.close(graceMs);
      clearInterval(looking);
    },
  };
}

/** `host[:port]` with a non-empty host (RFC 9110, 4.2.1 and 7.2). */
const HOST = /^(\[[\w.:]+\]|[\w.~!$&'()*+,;=%-]+)(:\d*)?$/;

/** At most one Host (RFC 9112, 3.2); node drops others silently. Node requires one in HTTP/1.1. */
function isHostValid({ rawHeaders, headers: { host } }: IncomingMessage): boolean {
  const count = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
  return count === 0 || (count === 1 && HOST.test(host ?? ''));
}

// Closes a server without dropping accepted requests. The HTTP server's own close() cuts idle
// connections at once, and requests in transit with them: a client that was promised
// `Keep-Alive: timeout=5` would get a reset, and not know whether its request was read (RFC 9112,
// 9.6).

/** After so many event loop turns without a new connection, the backlog counts as empty. */
const QUIET_TURNS = 3;
/** Upper limit, if clients keep connecting; node's own backlog holds 511. */
const MOST_TURNS = 1000;

class OrderlyClose {
  readonly #server: Server;
  readonly #answering = new Set<ServerResponse>();
  #isClosing = false;
  #accepted = 0;

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', () => {
      this.#accepted += 1;
    });
  }

  /** Call this with each request before it is handled. */
  note(response: ServerResponse): void {
    if (this.#isClosing) {
      response.setHeader('Connection', 'close');
    }
    this.#answering.add(response);
  }

  /** Call this with each finished response. */
  forget(response: ServerResponse): void {
    this.#answering.delete(response);
  }

  /**
   * Stops listening. A connection ends with its current or next answer, an idle one when its
   * keep-alive time is over, and every one after `graceMs`.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    await this.#emptyBacklog();
    const closed = once(this.#server, 'close');
    NetServer.prototype.close.call(this.#server);
    for (const response of this.#answering) {
      if (!response.headersSent) {
        response.setHeader('Connection', 'close');
      }
    }
    const cut = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    await closed;
    clearTimeout(cut);
    // Cleans up the HTTP server; the error that it no longer listens is expected.
    this.#server.close(() => undefined);
  }

  /**
   * Closing the listener would reset connections in its backlog. Each event loop turn accepts one
   * (libuv since 1.45), and the first may be closed already.
   */
  async #emptyBacklog(): Promise<void> {
    for (let turn = 0, quiet = 0; turn < MOST_TURNS && quiet < QUIET_TURNS; turn++) {
      const before = this.#accepted;
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#accepted === before ? quiet + 1 : 0;
    }
  }
}
