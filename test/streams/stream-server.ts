/** A web server with streams: files of a folder, texts that a test makes up, and what was asked of it. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface StreamServer {
  readonly origin: string;
  readonly url: (name: string) => string;
  /** `host:port` for OUTBOUND_ALLOW. */
  readonly allow: string;
  /** Paths in the order of their coming, with their queries. */
  readonly requests: string[];
  /** Of bodies, by path. */
  readonly sentBytes: Map<string, number>;
  /** The most that were open at the same time. */
  readonly peakConnections: number;
  /** Instead of what lies in the folder. */
  readonly texts: Map<string, string | Buffer>;
  /** Looks at a request first. Returns whether it has been answered. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean;
  close(): Promise<void>;
}

/** @param folder whose files are served, where no text of the same name is */
export async function serveStreams(folder: string): Promise<StreamServer> {
  const requests: string[] = [];
  const sentBytes = new Map<string, number>();
  const texts = new Map<string, string | Buffer>();
  const server = createServer(async (request, response) => {
    const url = request.url ?? '/';
    requests.push(url);
    if (self.intercept(request, response)) return;
    // Who intercepts may have written another.
    const { url: path = url } = request;
    const name = decodeURIComponent(path.slice(1).split('?')[0] ?? '');
    const text = texts.get(name);
    const whole =
      text === undefined ? await readFile(join(folder, name)).catch(() => undefined) : Buffer.from(text);
    if (whole === undefined) {
      response.writeHead(404).end();
      return;
    }
    const [, start, last = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const end = last === '' ? whole.length : Math.min(whole.length, Number(last) + 1);
    const body = start === undefined ? whole : whole.subarray(Number(start), end);
    sentBytes.set(name, (sentBytes.get(name) ?? 0) + body.length);
    const headers = { 'content-length': body.length, 'content-type': 'application/octet-stream' };
    if (start === undefined) response.writeHead(200, headers);
    else
      response.writeHead(206, { ...headers, 'content-range': `bytes ${start}-${end - 1}/${whole.length}` });
    response.end(body);
  });
  let open = 0;
  let peakConnections = 0;
  server.on('connection', (socket) => {
    open += 1;
    peakConnections = Math.max(peakConnections, open);
    socket.on('close', () => {
      open -= 1;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const self: StreamServer = {
    origin,
    url: (name) => `${origin}/${name}`,
    allow: `127.0.0.1:${port}`,
    requests,
    sentBytes,
    texts,
    get peakConnections() {
      return peakConnections;
    },
    intercept: () => false,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return self;
}
