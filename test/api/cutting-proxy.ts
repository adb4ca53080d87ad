/** A stretch of network that breaks where a test wants it to. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

interface Break {
  readonly afterBytes: number;
  /** Whether nobody gets through any more, until `isDown` is set back. Default: only this connection breaks. */
  readonly forAll?: boolean;
  /** Whether the server is told, or goes on waiting for what will never come. */
  readonly serverHears: boolean;
}

export class CuttingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #clients = new Set<Socket>();
  /** What each connection has sent since breaks were set. */
  readonly #sentBytes = new Map<Socket, number>();
  #breaks: Break[] = [];
  #targetPort = 0;
  /** How often the network broke. */
  broken = 0;
  /** While it is set, whoever connects is cut off at once. */
  isDown = false;

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
    if (this.isDown) {
      client.on('error', () => undefined).destroy();
      return;
    }
    this.#clients.add(client);
    client.on('close', () => this.#clients.delete(client));
    const server = connect(this.#targetPort, '127.0.0.1');
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    }
    server.pipe(client);
    // A server that hangs up on who is still sending is heard, though there is something left to send.
    server.on('close', () => client.destroySoon());
    client.on('end', () => server.end());
    client.on('data', (chunk: Buffer) => {
      const next = this.#breaks[0];
      const sentBytes = this.#sentBytes.get(client) ?? 0;
      if (next === undefined || sentBytes + chunk.length < next.afterBytes) {
        this.#sentBytes.set(client, sentBytes + chunk.length);
        // No faster than the server takes it: what is not sent yet cannot be lost.
        if (!server.write(chunk)) {
          client.pause();
          server.once('drain', () => client.resume());
        }
        return;
      }
      this.#breaks.shift();
      this.broken += 1;
      client.removeAllListeners('data').removeAllListeners('end');
      server.unpipe(client);
      server.write(chunk.subarray(0, next.afterBytes - sentBytes));
      client.resetAndDestroy();
      if (next.serverHears) server.destroySoon();
      if (next.forAll) {
        this.isDown = true;
        for (const socket of this.#clients) socket.resetAndDestroy();
      }
    });
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
