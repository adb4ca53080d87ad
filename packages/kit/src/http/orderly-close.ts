/**
 * Ending a server so that nobody who was let in is turned away. The HTTP server's own close() cuts idle connections at once, and with
 * them the requests that are on their way: a client that was told `Keep-Alive: timeout=5` sees a reset, and does not know
 * whether it was heard (RFC 9112, 9.6).
 */
import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';

/** Turns of the loop without a new connection after which the backlog is taken for empty. */
const QUIET_TURNS = 3;
/** Against clients that never cease to come; node's own backlog holds 511. */
const MOST_TURNS = 1000;

export class OrderlyClose {
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

  /** To be called with each request before it is handled. */
  note(response: ServerResponse): void {
    if (this.#isClosing) {
      response.setHeader('Connection', 'close');
    }
    this.#answering.add(response);
  }

  /** To be called with each response that is over. */
  forget(response: ServerResponse): void {
    this.#answering.delete(response);
  }

  /**
   * Stops listening. A connection ends with the answer that is under way or the next one, an idle one when its time to be
   * kept alive is over, and every one after `graceMs`.
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
    // Ends what the HTTP server has of its own; that it does not listen any more is no news.
    this.#server.close(() => undefined);
  }

  /**
   * What the system has let in lies in its backlog, and would be reset with the listener. Each turn of the loop takes over one
   * connection (libuv since 1.45), and the first may be over already.
   */
  async #emptyBacklog(): Promise<void> {
    for (let turn = 0, quiet = 0; turn < MOST_TURNS && quiet < QUIET_TURNS; turn++) {
      const before = this.#accepted;
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#accepted === before ? quiet + 1 : 0;
    }
  }
}
