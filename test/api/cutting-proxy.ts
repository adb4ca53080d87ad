/** A stretch of network that breaks where a test wants it to. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

interface Break {
  readonly afterBytes: number;
  /** Whether the server is told, or goes on waiting for what will never come. */
  readonly serverHears: boolean;
}

export class CuttingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** What each connection has sent since breaks were set. */
  readonly #sentBytes = new Map<Socket, number>();
  #breaks: Break[] = [];
  #targetPort = 0;
  /** How often the network broke. */
  broken = 0;

  private constructor() {
    this.#server = createServer((client) => this.#join(client));
  }

  static async open(): Promise<CuttingProxy> {
    const proxy = new CuttingProxy();
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  leadTo(url: string): void {
    this.#targetPort = Number(new URL(url).port);
  }

  /** The next connections that send so much break there, one after the other. */
  breakAfter(...breaks: Break[]): void {
    this.#breaks = breaks;
    this.#sentBytes.clear();
    this.broken = 0;
  }

  #join(client: Socket): void {
    const server = connect(this.#targetPort, '127.0.0.1');
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    }
    server.pipe(client);
    client.on('end', () => server.end());
    client.on('data', (chunk: Buffer) => {
      const next = this.#breaks[0];
      const sentBytes = this.#sentBytes.get(client) ?? 0;
      if (next === undefined || sentBytes + chunk.length < next.afterBytes) {
        this.#sentBytes.set(client, sentBytes + chunk.length);
        server.write(chunk);
        return;
      }
      this.#breaks.shift();
      this.broken += 1;
      server.write(chunk.subarray(0, next.afterBytes - sentBytes), () => {
        server.unpipe(client);
        client.destroy();
        if (next.serverHears) server.destroy();
      });
      client.removeAllListeners('data').removeAllListeners('end');
    });
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
