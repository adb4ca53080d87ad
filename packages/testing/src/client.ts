/** What a client of the service does: submit, ask, fetch, and listen for webhooks. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';
import { fetch } from './http.ts';
import { receivedBody } from './received-body.ts';
import { until } from './until.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, else it fails
export type Json = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
}

export class Client {
  readonly #base: string;
  readonly #key: string;

  constructor(base: string, key: string) {
    this.#base = base;
    this.#key = key;
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const isForm = body instanceof FormData;
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers: {
        'X-API-Key': this.#key,
        ...(body === undefined || isForm ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? null : isForm ? body : JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }

  async bytes(path: string): Promise<{ status: number; headers: Headers; bytes: Buffer }> {
    const address = path.startsWith('http') ? path : `${this.#base}${path}`;
    const response = await fetch(address, { headers: { 'X-API-Key': this.#key } });
    return {
      status: response.status,
      headers: response.headers,
      bytes: Buffer.from(await response.arrayBuffer()),
    };
  }

  /** Submits and answers the job's id. */
  async submit(request: object, prefix = ''): Promise<string> {
    const answer = await this.call('POST', `${prefix}/v1/extract`, request);
    if (answer.status !== 202) {
      throw new Error(`the job was not taken: ${JSON.stringify(answer.body)}`);
    }
    return answer.body.data.jobId;
  }

  /** @param headers more of them, such as an Idempotency-Key */
  async upload(path: string, request: object, headers?: Readonly<Record<string, string>>): Promise<Answer> {
    const form = new FormData();
    form.append('request', JSON.stringify(request));
    form.append('file', new Blob([await readFile(path)]), basename(path));
    return this.call('POST', '/v1/extract', form, headers);
  }

  /** The body of the status once the job has ended. */
  async ended(jobId: string, timeoutMs = 60_000): Promise<Json> {
    return until(
      `${jobId} has ended`,
      async () => {
        const { body } = await this.call('GET', `/v1/status/${jobId}`);
        return (!body.success || body.data.status === 'completed') && body;
      },
      timeoutMs,
    );
  }

  async completed(jobId: string, timeoutMs?: number): Promise<Json> {
    const body = await this.ended(jobId, timeoutMs);
    if (!body.success) {
      throw new Error(`the job failed: ${JSON.stringify(body.error)}`);
    }
    return body.data;
  }
}

interface Notification {
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly json: Json;
}

export interface WebhookReceiver {
  readonly url: string;
  /** `host:port` for OUTBOUND_ALLOW. */
  readonly allow: string;
  /** What came, also what was answered with an error. */
  readonly received: readonly Notification[];
  /** What came for a job, of one event; waits until there is some. */
  notifications(jobId: string, event: string): Promise<Notification[]>;
  close(): Promise<void>;
}

/** @param answerStatus status of the answer to the nth notification, from 1 */
export async function receiveWebhooks(
  answerStatus: (nth: number) => number = () => 204,
): Promise<WebhookReceiver> {
  const received: Notification[] = [];
  const server = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const text = body.toString('utf8');
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    received.push({ headers, text, json: JSON.parse(text) });
    response.writeHead(answerStatus(received.length)).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    allow: `127.0.0.1:${port}`,
    received,
    notifications: (jobId, event) =>
      until(`${event} of ${jobId} has come`, () => {
        const found = received.filter(({ json }) => json.jobId === jobId && json.event === event);
        return found.length > 0 && found;
      }),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
