/** A web server that breaks HTTP as it is told, byte by byte: what answers here writes to the socket itself. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface SourceRequest {
  readonly name: string;
  /** As the header says. */
  readonly range: string | undefined;
  /** From which byte on the file was asked for. */
  readonly start: number;
  /** ms since the epoch. */
  readonly atMs: number;
}

export interface Exchange extends SourceRequest {
  /** 1 for the first request for this name. */
  readonly nth: number;
  readonly socket: Socket;
  /** Writes, and resolves when the other side has room for more; answers whether there is still somebody. */
  say(what: string | Uint8Array): Promise<boolean>;
  /** Ends the connection once everything written has gone out. */
  cut(): void;
}

/** What to do with a request; the connection stays open until it is cut. */
export type Play = (exchange: Exchange) => unknown;

export class CrookedSource {
  readonly requests: SourceRequest[] = [];
  readonly #plays = new Map<string, Play>();
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    let head = '';
    const listen = (chunk: Buffer) => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', listen).resume();
      this.#answer(head, socket);
    };
    socket.on('data', listen);
  });

  static async start(): Promise<CrookedSource> {
    const source = new CrookedSource();
    source.#server.listen(0, '127.0.0.1');
    await once(source.#server, 'listening');
    return source;
  }

  /** `host:port` for OUTBOUND_ALLOW. */
  get allow(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** @returns the address at which `play` answers from now on */
  serve(name: string, play: Play): string {
    this.#plays.set(name, play);
    return `http://${this.allow}/${name}`;
  }

  requestsFor(name: string): SourceRequest[] {
    return this.requests.filter((request) => request.name === name);
  }

  #answer(head: string, socket: Socket): void {
    const header = (name: string) => new RegExp(`^${name}: *(.*?)\r$`, 'im').exec(head)?.[1];
    const range = header('range');
    const request = {
      name: /^GET \/(\S*)/.exec(head)?.[1] ?? '',
      range,
      start: Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0),
      atMs: Date.now(),
    };
    this.requests.push(request);
    this.#plays.get(request.name)?.({
      ...request,
      nth: this.requestsFor(request.name).length,
      socket,
      say: (what) =>
        new Promise((resolve) => {
          if (socket.destroyed) resolve(false);
          else socket.write(what, (error) => resolve(!error));
        }),
      cut: () => socket.destroySoon(),
    });
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** The head of an answer with these headers, a list of pairs since a name may come several times. */
export function head(status: string, headers: readonly (readonly [string, string | number])[] = []): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\n${lines.join('')}Connection: close\r\n\r\n`;
}
