/**
 * What cannot be read as a request. Node answers it and destroys the socket; the reset loses the
 * answers of a sender that still writes (RFC 9112, 9.6). Here only our half is closed, and the rest
 * is read and dropped for a while.
 */
import type { Server, ServerResponse } from 'node:http';
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

export function endUnreadable(server: Server, { lingerMs, lingerBytes }: LingerLimits): void {
  const readBefore = new WeakMap<Duplex, number>();
  const last = new WeakMap<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => last.set(socket, response));
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
    const isUnreadable = code.startsWith('HPE_');
    if (!isUnreadable && code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
      socket.destroy();
      return;
    }
    const bytesRead = 'bytesRead' in socket ? Number(socket.bytesRead) : 0;
    const from = readBefore.get(socket) ?? bytesRead;
    // Each further chunk is an error of its own.
    if (!readBefore.has(socket)) {
      readBefore.set(socket, bytesRead);
      setTimeout(() => socket.destroy(), lingerMs).unref();
      endWith(
        `HTTP/1.1 ${STATUSES[code] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`,
        socket,
        last.get(socket),
      );
    }
    if (!isUnreadable || bytesRead - from >= lingerBytes) Socket.prototype.destroySoon.call(socket);
  });
}

/** After the answer that is on its way: one that has begun, or that of the request before it. */
function endWith(answer: string, socket: Duplex, response: ServerResponse | undefined): void {
  if (response?.closed === false && (response.headersSent || response.req.complete))
    response.once('close', () => socket.end());
  else if (socket.writable) socket.end(answer);
}
