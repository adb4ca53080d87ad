/**
 * Bodies that hardly move, and bodies that nobody wants any more. A fixed limit of time would end long uploads of slow senders who
 * mean well, so what is asked for is a least rate: in every window so many bytes, or the rest of the body. Once a request is
 * answered the rest of its body is read and dropped for a little, since a sender whose connection is cut may never see the answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

interface SlowBodyLimits {
  readonly bodyWindowMs: number;
  readonly minBodyBytesPerWindow: number;
  /** What is read of a body after its answer. */
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

  /** Cuts who was too slow, or does not stop. To be called again and again. */
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
    // What has arrived and is not taken is our own delay: a disk that is slow, a lock that is held.
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
 * After the last answer of a connection (`Connection: close`) node destroys the socket, also in the middle of a body: the system resets the connection,
 * and the sender loses the answer (RFC 9112, 9.6). Until the body has ended, only our half of the connection is closed.
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
