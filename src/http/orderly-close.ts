/**
 * Ending a server so that nobody who was let in is turned away. The HTTP server's own close() cuts idle connections at once, and with
 * them the requests that are on their way: a client that was told `Keep-Alive: timeout=5` sees a reset, and does not know
 * whether it was heard (RFC 9112, 9.6).
 */
import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';

export class OrderlyClose {
  readonly #server: Server;
  readonly #answering = new Set<ServerResponse>();
  #isClosing = false;

  constructor(server: Server) {
    this.#server = server;
  }

  /** To be called with each request before it is handled. */
  note(response: ServerResponse): void {
    if (this.#isClosing) {
      response.setHeader('Connection', 'close');
    }
    this.#answering.add(response);
    response.once('close', () => this.#answering.delete(response));
  }

  /**
   * Stops listening. A connection ends with the answer that is under way or the next one, an idle one when its time to be
   * kept alive is over, and every one after `graceMs`.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    // What the system has let in lies in its backlog, and would be reset with the listener: a turn of the loop takes it over.
    await new Promise((resolve) => setImmediate(resolve));
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
}
