/** The receiver of the webhooks: records every call with its answer, and answers as it is told. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from 'soundpost-testing/client';
import { receivedBody } from 'soundpost-testing/received-body';
import { Webhook } from 'standardwebhooks';

export interface HookCall {
  /** With its query. */
  readonly path: string;
  /** The webhook-id: the same for every try. */
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly json: Json;
  /** ms since the epoch. */
  readonly atMs: number;
  /** Why the signature did not hold; undefined when it did. */
  readonly signatureFault: string | undefined;
  /** The status that was answered; null while there is none, or when the connection was cut. */
  status: number | null;
}

/** A status; a status with headers; `cut`: the connection is closed without an answer; `silent`: never an answer. */
export type HookAnswer =
  | number
  | { readonly status: number; readonly headers: Readonly<Record<string, string>> }
  | 'cut'
  | 'silent';

export class HookReceiver {
  readonly calls: HookCall[] = [];
  /** What to answer, or a promise of it; 204 unless it is set. */
  answer: (call: HookCall) => HookAnswer | Promise<HookAnswer> = () => 204;
  readonly #secrets: string[] = [];
  readonly #server = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const text = body.toString('utf8');
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const call: HookCall = {
      path: request.url ?? '',
      id: headers['webhook-id'] ?? '',
      headers,
      text,
      json: JSON.parse(text),
      atMs: Date.now(),
      signatureFault: this.#faultOf(text, headers),
      status: null,
    };
    this.calls.push(call);
    const answer = await this.answer(call);
    if (answer === 'silent') return;
    if (answer === 'cut') {
      request.socket.destroy();
      return;
    }
    const { status, headers: extra } = typeof answer === 'number' ? { status: answer, headers: {} } : answer;
    call.status = status;
    response.writeHead(status, extra).end();
  });

  /** @param host address that it listens on @param port 0 takes a free one */
  static async start(host = '127.0.0.1', port = 0): Promise<HookReceiver> {
    const receiver = new HookReceiver();
    receiver.#server.listen(port, host);
    await once(receiver.#server, 'listening');
    return receiver;
  }

  /** `host:port` for OUTBOUND_ALLOW. */
  get allow(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `${address}:${port}`;
  }

  get url(): string {
    return `http://${this.allow}/hook`;
  }

  /** Calls are checked against these at the moment when they come, since a signature is valid for five minutes only. */
  trust(secret: string): void {
    this.#secrets.push(secret);
  }

  #faultOf(text: string, headers: Record<string, string>): string | undefined {
    let fault = 'no secret was known';
    for (const secret of this.#secrets) {
      try {
        new Webhook(secret).verify(text, headers);
        return undefined;
      } catch (error) {
        fault = String(error);
      }
    }
    return fault;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
