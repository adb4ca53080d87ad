/** The API process: wire, listen, close. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createApp } from './app.ts';
import type { ApiServices } from './route.ts';

export interface ApiProcess {
  readonly port: number;
  /** Stops listening, lets answers that are under way finish for `graceMs`, then cuts them. */
  close(graceMs: number): Promise<void>;
}

/** Slow-client limits: the whole request (uploads of gigabytes included), and its headers. */
const REQUEST_TIMEOUT_MS = 6 * 60 * 60 * 1000;
const HEADERS_TIMEOUT_MS = 15_000;
const KEEP_ALIVE_MS = 5000;
const CLOSE_IDLE_EVERY_MS = 50;

/**
 * Rejects when the port is taken.
 * @param port 0 takes a free one
 * @param wire makes the services once the port is known, since answers carry it where no PUBLIC_URL is set
 */
export async function startApi(
  host: string,
  port: number,
  wire: (port: number) => ApiServices,
): Promise<ApiProcess> {
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const { port: listening } = server.address() as AddressInfo;
  server.on('request', createApp(wire(listening)));
  return {
    port: listening,
    async close(graceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      // Kept-alive connections become idle one after the other, as their answers end.
      const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
      const cut = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearInterval(idle);
      clearTimeout(cut);
    },
  };
}
