/**
 * Bodies that hardly move. A fixed limit of time would end long uploads of slow senders who mean well, so what is asked for is a
 * least rate: in every window so many bytes, or the rest of the body.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface SlowBodyLimits {
  readonly bodyWindowMs: number;
  readonly minBodyBytesPerWindow: number;
}

interface Watched {
  readonly response: ServerResponse;
  windowFromMs: number;
  bytesAtStart: number;
}

const TOO_SLOW = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

export class SlowBodies {
  readonly #limits: SlowBodyLimits;
  readonly #watched = new Map<IncomingMessage, Watched>();

  constructor(limits: SlowBodyLimits) {
    this.#limits = limits;
  }

  watch(request: IncomingMessage, response: ServerResponse): void {
    const hasBody =
      request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length']) > 0;
    if (hasBody) {
      this.#watched.set(request, {
        response,
        windowFromMs: performance.now(),
        bytesAtStart: request.socket.bytesRead,
      });
      request.once('close', () => this.#watched.delete(request));
    }
  }

  /** Cuts who was too slow. To be called again and again. */
  look(): void {
    const nowMs = performance.now();
    for (const [request, watched] of this.#watched) {
      const { socket } = request;
      // What has arrived and is not taken is our own delay: a disk that is slow, a lock that is held.
      const isOurDelay = request.readableLength > 0;
      if (request.complete || socket.destroyed) {
        this.#watched.delete(request);
      } else if (
        isOurDelay ||
        socket.bytesRead - watched.bytesAtStart >= this.#limits.minBodyBytesPerWindow
      ) {
        watched.windowFromMs = nowMs;
        watched.bytesAtStart = socket.bytesRead;
      } else if (nowMs - watched.windowFromMs >= this.#limits.bodyWindowMs) {
        this.#watched.delete(request);
        if (!watched.response.headersSent && socket.writable) {
          socket.write(TOO_SLOW);
        }
        socket.destroySoon();
      }
    }
  }
}
