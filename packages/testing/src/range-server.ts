/**
 * A web server that sends ranges (RFC 9110 §14), one or several in an answer, as quickly as it is
 * told.
 */
import { once } from 'node:events';
import { readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface RangeServerOptions {
  /** Whether it heeds Range at all; default it does. */
  readonly ranges?: boolean;
  /**
   * Whether it sends several ranges in one answer; otherwise such a request gets the whole file, as
   * Amazon S3 does.
   */
  readonly severalRanges?: boolean;
  /** Of all connections together; default as fast as it can. */
  readonly bytesPerSecond?: number;
  /** Looks at a request first. @returns whether it has been answered */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse, nth: number) => boolean;
}

export interface RangeServer {
  readonly url: (name: string) => string;
  /** `host:port` for OUTBOUND_ALLOW. */
  readonly allow: string;
  /** The Range headers in order; empty where there was none. */
  readonly ranges: readonly string[];
  /** Handed to the sockets, with headers. */
  readonly sentBytes: number;
  /** The most that were open at the same time. */
  readonly peakConnections: number;
  close(): Promise<void>;
}

const SLICE_BYTES = 64 * 1024;
const BOUNDARY = 'THIS_STRING_SEPARATES';

/** @param folder whose files are served */
export async function serveRanges(folder: string, options: RangeServerOptions = {}): Promise<RangeServer> {
  const ranges: string[] = [];
  let sentBytes = 0;
  let openConnections = 0;
  let peakConnections = 0;
  let freeAt = 0;

  const send = async (response: ServerResponse, bytes: Uint8Array): Promise<void> => {
    for (let at = 0; at < bytes.length && !response.destroyed; at += SLICE_BYTES) {
      const slice = bytes.subarray(at, at + SLICE_BYTES);
      if (options.bytesPerSecond !== undefined) {
        const now = performance.now();
        freeAt = Math.max(freeAt, now) + (slice.length / options.bytesPerSecond) * 1000;
        if (freeAt > now + 2) await sleep(freeAt - now);
      }
      sentBytes += slice.length;
      if (!response.write(slice) && !response.destroyed) {
        const { promise, resolve } = Promise.withResolvers<void>();
        response.once('drain', resolve).once('close', resolve);
        await promise;
        response.off('drain', resolve).off('close', resolve);
      }
    }
  };

  const server = createServer(async (request, response) => {
    const { range = '' } = request.headers;
    ranges.push(range);
    if (options.intercept?.(request, response, ranges.length)) return;
    const file = await open(join(folder, (request.url ?? '').slice(1))).catch(() => undefined);
    if (file === undefined) {
      response.writeHead(404).end();
      return;
    }
    try {
      const { size, mtimeMs } = await file.stat();
      const etag = `"${size.toString(36)}-${Math.round(mtimeMs).toString(36)}"`;
      const ifRange = request.headers['if-range'];
      const heeds = options.ranges !== false && (ifRange === undefined || ifRange === etag);
      const spans = heeds ? parseRange(range, size) : [];
      const headers = { etag, 'accept-ranges': 'bytes', 'content-type': 'video/mp4' };
      const [span] = spans;
      if (spans.length > 1 && options.severalRanges !== false) {
        const body = multipart(file, spans, size);
        const type = `multipart/byteranges; boundary=${BOUNDARY}`;
        response.writeHead(206, { ...headers, 'content-type': type, 'content-length': body.length });
        await send(response, body);
      } else if (spans.length === 1 && span !== undefined) {
        const contentRange = `bytes ${span.start}-${span.end - 1}/${size}`;
        const length = span.end - span.start;
        response.writeHead(206, { ...headers, 'content-range': contentRange, 'content-length': length });
        await sendFile(response, file, span, send);
      } else {
        response.writeHead(200, { ...headers, 'content-length': size });
        await sendFile(response, file, { start: 0, end: size }, send);
      }
      response.end();
    } finally {
      await file.close();
    }
  });
  server.on('connection', (socket) => {
    openConnections += 1;
    peakConnections = Math.max(peakConnections, openConnections);
    socket.on('close', () => {
      openConnections -= 1;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: (name) => `http://127.0.0.1:${port}/${name}`,
    allow: `127.0.0.1:${port}`,
    ranges,
    get sentBytes() {
      return sentBytes;
    },
    get peakConnections() {
      return peakConnections;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Span {
  readonly start: number;
  readonly end: number;
}

function parseRange(header: string, size: number): Span[] {
  const ranges = /^bytes=(.+)$/.exec(header)?.[1]?.split(',') ?? [];
  return ranges.map((range) => {
    const [, start = '', last = ''] = /^\s*(\d+)-(\d*)\s*$/.exec(range) ?? [];
    return { start: Number(start), end: last === '' ? size : Math.min(size, Number(last) + 1) };
  });
}

async function read(file: FileHandle, { start, end }: Span): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
  return buffer.subarray(0, bytesRead);
}

async function sendFile(
  response: ServerResponse,
  file: FileHandle,
  { start, end }: Span,
  send: (response: ServerResponse, bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  for (let at = start; at < end && !response.destroyed; at += SLICE_BYTES) {
    await send(response, await read(file, { start: at, end: Math.min(end, at + SLICE_BYTES) }));
  }
}

function multipart(file: FileHandle, spans: readonly Span[], size: number): Buffer {
  const heads = spans.map(({ start, end }) => {
    const contentRange = `bytes ${start}-${end - 1}/${size}`;
    return `\r\n--${BOUNDARY}\r\nContent-Type: video/mp4\r\nContent-Range: ${contentRange}\r\n\r\n`;
  });
  const tail = `\r\n--${BOUNDARY}--\r\n`;
  const length = spans.reduce((sum, { start, end }, nth) => sum + (heads[nth] ?? '').length + end - start, 0);
  const body = Buffer.allocUnsafe(length + tail.length);
  let at = 0;
  for (const [nth, { start, end }] of spans.entries()) {
    at += body.write(heads[nth] ?? '', at, 'latin1');
    // Hundreds of small reads from memory: a thread for each of them would take longer than the
    // read.
    at += readSync(file.fd, body, at, end - start, start);
  }
  at += body.write(tail, at, 'latin1');
  return body.subarray(0, at);
}
