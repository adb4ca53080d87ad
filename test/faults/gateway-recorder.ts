/** Stands before the real gateway: records every call of the workers with its answer, and loses or refuses as it is told. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { fetch } from 'soundpost-testing/http';
import { freePort } from 'soundpost-testing/ports';

export interface GatewayCall {
  readonly method: string;
  readonly path: string;
  readonly idempotencyKey: string | undefined;
  /** ms since the epoch. */
  readonly atMs: number;
  /** What the real gateway answered; null while there is none, or when it was not asked. */
  gatewayStatus: number | null;
  /** The id of the message that the gateway's answer named. */
  messageId: string | undefined;
  /** What the caller saw; null when the connection was cut. */
  seenStatus: number | null;
}

/**
 * - `pass`: the gateway's answer is handed on;
 * - `lose`: the gateway gets the call, the caller a connection that is cut;
 * - `drop`: the connection is cut before the gateway has heard anything;
 * - a number: that status, and the gateway hears nothing;
 * - `afterwards`: the gateway gets the call, the caller that status instead of its answer.
 */
export type GatewayBehaviour = 'pass' | 'lose' | 'drop' | number | { readonly afterwards: number };

export class GatewayRecorder {
  readonly calls: GatewayCall[] = [];
  /** What to do with a call, or a promise of it: until it resolves the caller waits. */
  behaviour: (call: GatewayCall) => GatewayBehaviour | Promise<GatewayBehaviour> = () => 'pass';
  /** Sabotage: the gateway never hears the Idempotency-Key, so that it cannot know a repetition. */
  hidesKeys = false;
  /** Base address of the real gateway. */
  target = '';
  readonly #host: string;
  /** Its own also while nobody listens. */
  readonly #port: number;
  #server: Server = this.#listen();

  private constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  /** @param host address that it listens on */
  static async start(host = '127.0.0.1'): Promise<GatewayRecorder> {
    const recorder = new GatewayRecorder(host, await freePort());
    await recorder.up();
    return recorder;
  }

  get url(): string {
    return `http://${this.#host}:${this.#port}`;
  }

  /** From now on connections are refused. */
  async down(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Listens again, on the same port. */
  async up(): Promise<void> {
    if (this.#server.listening) return;
    this.#server = this.#listen();
    this.#server.listen(this.#port, this.#host);
    await once(this.#server, 'listening');
  }

  #listen(): Server {
    return createServer((request, response) => {
      this.#handle(request, response).catch(() => request.socket.destroy());
    });
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray());
    const call: GatewayCall = {
      method: request.method ?? '',
      path: request.url ?? '',
      idempotencyKey: header(request, 'idempotency-key'),
      atMs: Date.now(),
      gatewayStatus: null,
      messageId: undefined,
      seenStatus: null,
    };
    this.calls.push(call);
    const behaviour = await this.behaviour(call);
    if (behaviour === 'drop') {
      request.socket.destroy();
      return;
    }
    if (typeof behaviour === 'number') {
      call.seenStatus = behaviour;
      response.writeHead(behaviour).end();
      return;
    }
    const names = ['content-type', 'apikey', ...(this.hidesKeys ? [] : ['idempotency-key'])];
    const passedOn = names.flatMap((name) => {
      const value = header(request, name);
      return value === undefined ? [] : [[name, value] as const];
    });
    const answer = await fetch(`${this.target}${call.path}`, {
      method: call.method,
      headers: Object.fromEntries(passedOn),
      body: body.length === 0 ? null : body,
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    call.gatewayStatus = answer.status;
    call.messageId = messageIdIn(bytes.toString('utf8'));
    if (behaviour === 'lose') {
      request.socket.destroy();
      return;
    }
    if (typeof behaviour === 'object') {
      call.seenStatus = behaviour.afterwards;
      response.writeHead(behaviour.afterwards).end();
      return;
    }
    const retryAfter = answer.headers.get('retry-after');
    response.writeHead(answer.status, {
      'content-type': answer.headers.get('content-type') ?? 'application/json',
      ...(retryAfter === null ? {} : { 'retry-after': retryAfter }),
    });
    response.end(bytes);
    call.seenStatus = answer.status;
  }

  async close(): Promise<void> {
    await this.down();
  }
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return value === undefined ? undefined : String(value);
}

function messageIdIn(text: string): string | undefined {
  return /"key":\s*\{[^}]*"id":\s*"([^"]+)"/.exec(text)?.[1];
}
