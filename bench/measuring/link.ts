/**
 * A web server with ranges behind a link of a given rate and round trip, in a thread of its own, so that the work of sending is not
 * done by the thread that receives. Run as a worker: `workerData` is {@link LinkSettings}; it posts its {@link LinkReady} once, and answers
 * each message with its {@link LinkCount}.
 */
import { connect, createServer, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { serveRanges } from 'soundpost-testing/range-server';

export interface LinkSettings {
  readonly folder: string;
  readonly severalRanges: boolean;
  /** Of all connections together, from the server to its clients; 0: no link, the server itself is asked. */
  readonly bitsPerSecond: number;
  readonly roundTripMs: number;
}

export interface LinkReady {
  readonly allow: string;
}

export interface LinkCount {
  /** Handed over to clients, with headers. */
  readonly bytes: number;
  readonly requests: number;
  readonly peakConnections: number;
}

const SLICE_BYTES = 16 * 1024;
/** What routers and sockets on the way hold of one connection. */
const QUEUE_BYTES = 256 * 1024;

const { folder, severalRanges, bitsPerSecond, roundTripMs } = workerData as LinkSettings;
const server = await serveRanges(folder, { severalRanges });
let bytes = 0;
let open = 0;
let peakConnections = 0;
let freeAt = 0;

/** Hands on in order, each slice when its time has come. */
function delayed(deliver: (slice: Buffer) => void): (slice: Buffer, dueAt: number) => void {
  const queue: { slice: Buffer; dueAt: number }[] = [];
  const run = (): void => {
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      const waitMs = next.dueAt - performance.now();
      if (waitMs > 0.5) {
        setTimeout(run, waitMs);
        return;
      }
      queue.shift();
      deliver(next.slice);
    }
  };
  return (slice, dueAt) => {
    queue.push({ slice, dueAt });
    if (queue.length === 1) run();
  };
}

function join(client: Socket): void {
  const [host = '', port = ''] = server.allow.split(':');
  const origin = connect(Number(port), host);
  const acceptedAt = performance.now();
  let queued = 0;
  open += 1;
  peakConnections = Math.max(peakConnections, open);
  const up = delayed((slice) => origin.write(slice));
  const down = delayed((slice) => {
    queued -= slice.length;
    if (queued < QUEUE_BYTES) origin.resume();
    if (client.destroyed) return;
    bytes += slice.length;
    client.write(slice);
  });
  // Loopback has no handshake to wait for; over a link the first request leaves a round trip after the connection was asked for.
  client.on('data', (chunk) =>
    up(chunk, Math.max(performance.now(), acceptedAt + roundTripMs) + roundTripMs / 2),
  );
  origin.on('data', (chunk) => {
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
      const slice = chunk.subarray(at, at + SLICE_BYTES);
      freeAt = Math.max(freeAt, performance.now()) + (slice.length * 8000) / bitsPerSecond;
      queued += slice.length;
      down(slice, freeAt + roundTripMs / 2);
    }
    if (queued >= QUEUE_BYTES) origin.pause();
  });
  client
    .on('error', () => undefined)
    .on('close', () => {
      open -= 1;
      origin.destroy();
    });
  origin
    .on('error', () => client.destroy())
    .on('close', () => {
      if (queued <= 0) client.end();
    });
}

const link = createServer({ noDelay: true }, join);
link.listen(0, '127.0.0.1', () => {
  const address = link.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const ready: LinkReady = { allow: bitsPerSecond === 0 ? server.allow : `127.0.0.1:${port}` };
  parentPort?.postMessage(ready);
});
parentPort?.on('message', () => {
  const count: LinkCount =
    bitsPerSecond === 0
      ? { bytes: server.sentBytes, requests: server.ranges.length, peakConnections: server.peakConnections }
      : { bytes, requests: server.ranges.length, peakConnections };
  parentPort?.postMessage(count);
});
