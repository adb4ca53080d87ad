/** A link to Redis that can be held: what either side says then stays under way, and arrives late. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class HeldLink {
  /** For REDIS_URL. */
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isHeld = false;

  private constructor(server: Server, path: string) {
    this.#server = server;
    this.url = `unix://${path}`;
  }

  /** @param path of the socket to listen on @param target where Redis listens, by the time somebody connects */
  static async start(path: string, target: () => string): Promise<HeldLink> {
    const server = createServer((client) => link.#join(client, connect(target())));
    server.listen(path);
    await once(server, 'listening');
    const link = new HeldLink(server, path);
    return link;
  }

  #join(client: Socket, redis: Socket): void {
    for (const [socket, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.on('data', (bytes) => other.write(bytes));
      if (this.#isHeld) socket.pause();
    }
  }

  hold(): void {
    this.#isHeld = true;
    for (const socket of this.#sockets) socket.pause();
  }

  letGo(): void {
    this.#isHeld = false;
    for (const socket of this.#sockets) socket.resume();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
