/**
 * Ends slow and unwanted bodies. A fixed time limit would end long uploads of honest slow senders,
 * so each window needs a minimum of bytes, or the rest of the body. After the answer the rest is
 * read and dropped for a while, since a sender whose connection is cut may never see the answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

interface SlowBodyLimits {
  readonly bodyWindowMs: number;
  readonly minBodyBytesPerWindow: number;
  /** Limits for reading a body after its answer. */
  readonly lingerMs: number;
  readonly lingerBytes: number;
}

interface WatchedBody {
  readonly response: ServerResponse;
  isAnswered: boolean;
  fromMs: number;
  bytesAtStart: number;
}

const TOO_SLOW = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

export class SlowBodies {
  readonly #limits: SlowBodyLimits;
  readonly #watched = new Map<IncomingMessage, WatchedBody>();

  constructor(limits: SlowBodyLimits) {
    this.#limits = limits;
  }

  watch(request: IncomingMessage, response: ServerResponse): void {
    const hasBody =
      request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length']) > 0;
    if (!hasBody) {
      return;
    }
    const watched = { response, isAnswered: false, fromMs: 0, bytesAtStart: 0 };
    this.#watched.set(request, begun(request, watched));
    endsWithTheBody(request);
    request.once('close', () => this.#watched.delete(request));
    response.once('finish', () => {
      watched.isAnswered = true;
      begun(request, watched);
    });
  }

  /** Cuts bodies that are too slow or do not stop. Call this repeatedly. */
  look(): void {
    for (const [request, watched] of this.#watched) {
      const { socket } = request;
      if (request.complete || socket.destroyed) {
        this.#watched.delete(request);
      } else if (watched.isAnswered) {
        this.#lookAtRest(request, watched);
      } else {
        this.#lookAtBody(request, watched);
      }
    }
  }

  #lookAtBody(request: IncomingMessage, watched: WatchedBody): void {
    const { bodyWindowMs, minBodyBytesPerWindow } = this.#limits;
    const { socket } = request;
    // Unread data means that this process is slow: a slow disk, a held lock.
    const isOurDelay = request.readableLength > 0;
    if (isOurDelay || socket.bytesRead - watched.bytesAtStart >= minBodyBytesPerWindow) {
      begun(request, watched);
    } else if (performance.now() - watched.fromMs >= bodyWindowMs) {
      if (!watched.response.headersSent && socket.writable) {
        socket.write(TOO_SLOW);
      }
      this.#cut(request);
    }
  }

  #lookAtRest(request: IncomingMessage, { fromMs, bytesAtStart }: WatchedBody): void {
    const { lingerMs, lingerBytes } = this.#limits;
    if (performance.now() - fromMs >= lingerMs || request.socket.bytesRead - bytesAtStart >= lingerBytes) {
      this.#cut(request);
    }
  }

  #cut(request: IncomingMessage): void {
    this.#watched.delete(request);
    Socket.prototype.destroySoon.call(request.socket);
  }
}

/**
 * After the last answer of a connection, node destroys the socket, also within a body; the reset
 * loses the answer (RFC 9112, 9.6). Close only our half until the body has ended.
 */
function endsWithTheBody(request: IncomingMessage): void {
  const { socket } = request;
  let isLast = false;
  socket.destroySoon = () => {
    isLast = true;
    socket.end();
  };
  request.once('close', () => {
    socket.destroySoon = Socket.prototype.destroySoon;
    if (isLast) socket.destroySoon();
  });
}

function begun({ socket }: IncomingMessage, watched: WatchedBody): WatchedBody {
  watched.fromMs = performance.now();
  watched.bytesAtStart = socket.bytesRead;
  return watched;
}
