/**
 * A web server with videos: sends files whole, or begins and then says nothing more until it is let
 * go.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface VideoServer {
  readonly url: (name: string) => string;
  /** `host:port` for OUTBOUND_ALLOW. */
  readonly allow: string;
  /** Downloads that were begun, by name. */
  readonly requests: readonly string[];
  /** From now on a download stops in its middle. */
  hold(): void;
  /** Lets held downloads go on, and those to come. */
  letGo(): void;
  close(): Promise<void>;
}

/**
 * @param folder whose files are served
 * @param host address that it listens on
 * @param listenPort 0 takes a free one
 */
export async function serveVideos(folder: string, host = '127.0.0.1', listenPort = 0): Promise<VideoServer> {
  const requests: string[] = [];
  let gate: PromiseWithResolvers<void> | undefined;
  const server = createServer(async (request, response) => {
    const [name = ''] = (request.url ?? '').slice(1).split('?');
    requests.push(name);
    const bytes = await readFile(join(folder, name)).catch(() => undefined);
    if (bytes === undefined) {
      response.writeHead(404).end();
      return;
    }
    const half = Math.floor(bytes.length / 2);
    response.writeHead(200, { 'content-length': bytes.length });
    response.write(bytes.subarray(0, half));
    await gate?.promise;
    response.end(bytes.subarray(half));
  });
  server.listen(listenPort, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: (name) => `http://${host}:${port}/${name}`,
    allow: `${host}:${port}`,
    requests,
    hold() {
      gate = Promise.withResolvers();
    },
    letGo() {
      gate?.resolve();
      gate = undefined;
    },
    async close() {
      gate?.resolve();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
