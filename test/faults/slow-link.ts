/** A link from a replica to its master over which the master's words take their time; what is under way when it is cut is gone, as when the master's machine dies. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export class SlowLink {
  readonly port: number;
  readonly #sockets = new Set<Socket>();
  readonly #close: () => void;
  #isCut = false;

  private constructor(port: number, close: () => void) {
    this.port = port;
    this.#close = close;
  }

  /** @param masterPort of 127.0.0.1 */
  static async start(masterPort: number, delayMs: number): Promise<SlowLink> {
    const server = createServer((replica) => link.#join(replica, connect(masterPort, '127.0.0.1'), delayMs));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const link = new SlowLink((server.address() as AddressInfo).port, () => server.close());
    return link;
  }

  #join(replica: Socket, master: Socket, delayMs: number): void {
    for (const [socket, other] of [
      [replica, master],
      [master, replica],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    replica.pipe(master);
    master.on('data', (bytes) => {
      setTimeout(() => {
        if (!this.#isCut) replica.write(bytes);
      }, delayMs);
    });
  }

  cut(): void {
    this.#isCut = true;
    this.#close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
