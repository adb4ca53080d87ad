/** Stands between a gateway and its XMPP server, and lets a test break the connection at a moment of its choice. */
import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';

export interface CuttableLine {
  readonly port: number;
  /** Everything that came from the server, as text. */
  received(): string;
  /** How many connections were made. */
  connections(): number;
  /**
   * From now on the server still hears everything, but its answers no longer come through on what is connected now.
   * @param afterSending not before this text has gone to the server, once more if it had before
   */
  deafen(afterSending?: string): void;
  /** Resolves when a text has gone to the server. */
  sent(text: string): Promise<void>;
  /** Breaks what is connected, without a word; new connections work. */
  cut(): void;
  close(): Promise<void>;
}

/** @param host address that it listens on @param listenPort 0 takes a free one */
export async function startCuttableLine(
  serverPort: number,
  host = '127.0.0.1',
  listenPort = 0,
): Promise<CuttableLine> {
  const pairs = new Set<{ client: Socket; upstream: Socket; deaf: boolean }>();
  const waiting = new Map<string, () => void>();
  let fromServer = '';
  let toServer = '';
  let count = 0;
  let deafenAfter: { readonly text: string; readonly from: number } | undefined;
  const server = createServer((client) => {
    count++;
    const upstream = createConnection(serverPort, '127.0.0.1');
    const pair = { client, upstream, deaf: false };
    pairs.add(pair);
    for (const socket of [client, upstream]) {
      socket.setNoDelay();
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
        pairs.delete(pair);
      });
    }
    client.on('data', (chunk) => {
      toServer += chunk;
      if (deafenAfter !== undefined && toServer.includes(deafenAfter.text, deafenAfter.from)) {
        pair.deaf = true;
        deafenAfter = undefined;
      }
      upstream.write(chunk, () => {
        for (const [text, resolve] of waiting) if (toServer.includes(text)) resolve();
      });
    });
    upstream.on('data', (chunk) => {
      if (pair.deaf) return;
      fromServer += chunk;
      client.write(chunk);
    });
  });
  server.listen(listenPort, host);
  await once(server, 'listening');
  const cut = (): void => {
    for (const { client, upstream } of pairs) {
      client.destroy();
      upstream.resetAndDestroy();
    }
  };
  return {
    port: (server.address() as AddressInfo).port,
    received: () => fromServer,
    connections: () => count,
    deafen(afterSending) {
      deafenAfter = afterSending === undefined ? undefined : { text: afterSending, from: toServer.length };
      if (deafenAfter !== undefined) return;
      for (const pair of pairs) pair.deaf = true;
    },
    sent: (text) =>
      new Promise((resolve) => {
        waiting.set(text, resolve);
        if (toServer.includes(text)) resolve();
      }),
    cut,
    async close() {
      cut();
      await once(server.close(), 'close');
    },
  };
}
