/** A gateway of somebody else: the same interface, but it knows no Idempotency-Key, and each request that it takes is a message. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from 'soundpost-testing/client';
import { receivedBody } from 'soundpost-testing/received-body';

/** `take` sends and answers; `lose` sends and hangs up; a status without `taken` sends nothing. */
export type OtherBehaviour = 'take' | 'lose' | { readonly status: number; readonly taken: boolean };

export class OtherGateway {
  /** Recipients of the messages that were sent, in order. */
  readonly sent: string[] = [];
  /** Recipients of all requests. */
  readonly calls: string[] = [];
  /** What to do with the nth request for a recipient, from 1; the message is sent before a promise of it is waited for. */
  behaviour: (number: string, nth: number) => OtherBehaviour | Promise<OtherBehaviour> = () => 'take';
  readonly #server = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const { number }: Json = JSON.parse(body.toString('utf8'));
    this.calls.push(number);
    const promised = this.behaviour(number, this.calls.filter((other) => other === number).length);
    if (promised instanceof Promise) this.sent.push(number);
    const behaviour = await promised;
    const status = typeof behaviour === 'object' ? behaviour.status : 201;
    const taken = typeof behaviour === 'object' ? behaviour.taken : true;
    if (taken && !(promised instanceof Promise)) this.sent.push(number);
    if (behaviour === 'lose') {
      request.socket.destroy();
      return;
    }
    const key = { remoteJid: `${number}@people.example`, fromMe: true, id: `MESSAGE${this.sent.length}` };
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(status === 201 ? { key, status: 'PENDING' } : { error: 'Broken' }));
  });

  static async start(): Promise<OtherGateway> {
    const gateway = new OtherGateway();
    gateway.#server.listen(0, '127.0.0.1');
    await once(gateway.#server, 'listening');
    return gateway;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  sentTo(number: string): number {
    return this.sent.filter((other) => other === number).length;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
