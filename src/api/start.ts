/** The API process: wire, listen, close. */
import { type Listener, listen } from '../http/listener.ts';
import type { Around } from '../http/watched.ts';
import { createApp } from './app.ts';
import type { ApiServices } from './route.ts';

export interface ApiProcess extends Pick<Listener, 'close'> {
  readonly port: number;
}

/**
 * Rejects when the port is taken.
 * @param port 0 takes a free one
 * @param wire makes the services once the port is known, since answers carry it where no PUBLIC_URL is set
 */
export async function startApi(
  host: string,
  port: number,
  wire: (port: number) => ApiServices,
  around: Around = (handler) => handler,
): Promise<ApiProcess> {
  const { address, close } = await listen(host, port, (found) => around(createApp(wire(found.port))));
  return { port: address.port, close };
}
