/**
 * What cannot be read as a request. Node answers it and destroys the socket; the reset loses the
 * answers of a sender that still writes (RFC 9112, 9.6). Here only our half is closed, and the rest
 * is read and dropped for a while.
 */
import type { Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

interface LingerLimits {
  readonly lingerMs: number;
  readonly lingerBytes: number;
}

/** As node has them; everything else is 400. */
const STATUSES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** @param isAnswering whether an answer to an earlier request of the connection is on its way */
export function endUnreadable(
  server: Server,
  isAnswering: (socket: Duplex) => boolean,
  { lingerMs, lingerBytes }: LingerLimits,
): void {
  const readBefore = new WeakMap<Duplex, number>();
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
    const isUnreadable = code.startsWith('HPE_');
    if (!isUnreadable && code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
      socket.destroy();
      return;
    }
    const bytesRead = 'bytesRead' in socket ? Number(socket.bytesRead) : 0;
    const from = readBefore.get(socket);
    if (from === undefined) {
      readBefore.set(socket, bytesRead);
      setTimeout(() => socket.destroy(), lingerMs).unref();
    }
    if (socket.writable && !isAnswering(socket)) {
      const status = STATUSES[code] ?? '400 Bad Request';
      // Each further chunk is an error of its own.
      socket.end(from === undefined ? `HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n` : '');
    }
    if (!isUnreadable || bytesRead - (from ?? bytesRead) >= lingerBytes)
      Socket.prototype.destroySoon.call(socket);
  });
}
