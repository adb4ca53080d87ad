/**
 * A bucket that takes PUTs at addresses whose query gives the right to: what came, and what is
 * answered. An object is there when all of it came.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from './until.ts';

interface Put {
  /** With its query. */
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
  readonly sizeBytes: number;
  readonly sha256: string;
  /** All that Content-Length said. */
  readonly isWhole: boolean;
  readonly status: number;
}

interface BucketAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export class Bucket {
  /** Every request that has ended, in order. */
  readonly puts: Put[] = [];
  /** Requests that have begun. */
  begun = 0;
  /** Asked when a request has come whole; the nth, from 1. */
  answer: (nth: number, request: IncomingMessage) => BucketAnswer | Promise<BucketAnswer> = () => ({
    status: 200,
  });
  /** Called with how much of a request has come; what it waits for holds the request up. */
  onBytes: (sizeBytes: number, request: IncomingMessage) => unknown = () => undefined;

  readonly handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    this.begun += 1;
    const nth = this.begun;
    const hash = createHash('sha256');
    let sizeBytes = 0;
    try {
      for await (const chunk of request) {
        hash.update(chunk);
        sizeBytes += chunk.length;
        await this.onBytes(sizeBytes, request);
      }
    } catch {
      // Broken off: the object is not there.
    }
    const { url: target = '', headers } = request;
    const isWhole = request.complete && sizeBytes === Number(headers['content-length']);
    const { status, headers: answered = {} } = isWhole ? await this.answer(nth, request) : { status: 0 };
    this.puts.push({ target, headers, sizeBytes, sha256: hash.digest('hex'), isWhole, status });
    if (isWhole) response.writeHead(status, answered).end();
  };

  /** What was put well, by path: the last of each. */
  get objects(): ReadonlyMap<string, Put> {
    const taken = this.puts.filter(({ isWhole, status }) => isWhole && status >= 200 && status < 300);
    return new Map(taken.map((put) => [put.target.split('?')[0] ?? '', put]));
  }

  /** Every request, once it is at least so many. */
  got(count: number): Promise<readonly Put[]> {
    return until(`${count} puts`, () => this.puts.length >= count && this.puts, 60_000);
  }
}

export interface BucketServer {
  readonly bucket: Bucket;
  readonly url: string;
  /** A rule of OUTBOUND_ALLOW. */
  readonly allow: string;
  close(): Promise<void>;
}

/** A bucket with a server of its own. */
export async function serveBucket(): Promise<BucketServer> {
  const bucket = new Bucket();
  const server = createServer(bucket.handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    bucket,
    url: `http://127.0.0.1:${port}`,
    allow: `127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
