/** What no HTTP client would send: bytes on a connection, and what came back until it was closed. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export class RawConnection {
  readonly socket: Socket;
  #received = '';
  #closedAfterMs: number | undefined;
  readonly #startedMs = performance.now();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      this.#received += text;
    });
    // A connection that is cut while something is being sent ends with an error.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#closedAfterMs = performance.now() - this.#startedMs;
    });
  }

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  /** Everything that came so far. */
  get received(): string {
    return this.#received;
  }

  /** How long after its beginning the connection was closed; undefined while it is open. */
  get closedAfterMs(): number | undefined {
    return this.#closedAfterMs;
  }

  /** Statuses of the answers that came, in order. */
  get statuses(): number[] {
    return [...this.#received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  }

  /** Resolves once the bytes have been handed to the system, or the connection is gone. */
  async send(bytes: string | Buffer): Promise<void> {
    if (!this.socket.writable) return;
    const buffer = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
    await new Promise<void>((resolve) => this.socket.write(buffer, () => resolve()));
  }

  get isOpen(): boolean {
    return this.#closedAfterMs === undefined;
  }

  close(): void {
    this.socket.destroy();
  }
}
