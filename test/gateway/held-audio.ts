/** Sound at an address that keeps whoever fetches it waiting: a send is under way for exactly as long as a test wants. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HeldAudio {
  readonly url: string;
  /** A rule of OUTBOUND_ALLOW. */
  readonly allow: string;
  /** Resolves when it was asked for. */
  readonly asked: Promise<void>;
  /** Gives it, from now on to everybody. */
  give(): void;
  close(): void;
}

export async function startHeldAudio(sound: Buffer): Promise<HeldAudio> {
  const asked = Promise.withResolvers<void>();
  const given = Promise.withResolvers<void>();
  const server = createServer(async (_request, response) => {
    asked.resolve();
    await given.promise;
    response.end(sound);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const allow = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `http://${allow}/held.ogg`,
    allow,
    asked: asked.promise,
    give: given.resolve,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
