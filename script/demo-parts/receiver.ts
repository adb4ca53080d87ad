/** The caller's side of a webhook. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deadline } from 'soundpost-base/deadline';

interface Notification {
  readonly headers: IncomingHttpHeaders;
  /** The bytes as they came: a signature is over these. */
  readonly body: string;
}

export interface Receiver {
  /** `127.0.0.1:<port>` */
  readonly address: string;
  /** Resolves with the first notification that speaks of the job; rejects after 30 s. */
  notified(jobId: string): Promise<Notification>;
  close(): void;
}

const PATIENCE_MS = 30_000;

export async function startReceiver(): Promise<Receiver> {
  const seen: Notification[] = [];
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    seen.push({ headers: request.headers, body: Buffer.concat(chunks).toString('utf8') });
    response.end();
    server.emit('notified');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    async notified(jobId) {
      using limit = deadline(PATIENCE_MS);
      for (;;) {
        const found = seen.find(({ body }) => body.includes(jobId));
        if (found !== undefined) {
          return found;
        }
        await once(server, 'notified', { signal: limit.signal });
      }
    },
    close: () => server.close(),
  };
}
