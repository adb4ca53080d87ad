/** A transcriber whose answers a test writes, and who remembers what it was asked. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { receivedBody } from 'soundpost-testing/received-body';

export interface Asked {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly fields: Readonly<Record<string, string>>;
  /** The WAV file. */
  readonly audio: Buffer;
  readonly seconds: number;
}

export interface TranscriberStub {
  /** TRANSCRIBER_URL. */
  readonly url: string;
  readonly asked: readonly Asked[];
  /** From now on. */
  answer: (response: ServerResponse, asked: Asked, nth: number) => void;
  close(): Promise<void>;
}

/** One segment for the whole of a part, whose text is the number of the request. */
export function hear(response: ServerResponse, { seconds }: Asked, nth: number): void {
  sendJson(response, 200, {
    task: 'transcribe',
    language: 'english',
    duration: seconds,
    text: ` Part ${nth}.`,
    segments: [{ id: 0, start: 0, end: seconds, text: ` Part ${nth}.` }],
  });
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

export async function startTranscriber(): Promise<TranscriberStub> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const type = request.headers['content-type'] ?? '';
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    const file = form.get('file');
    const audio = file instanceof Blob ? Buffer.from(await file.arrayBuffer()) : Buffer.alloc(0);
    const fields = Object.fromEntries(
      [...form].filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
    );
    const one: Asked = {
      path: request.url ?? '',
      headers: request.headers,
      fields,
      audio,
      seconds: (audio.length - 44) / 32_000,
    };
    asked.push(one);
    stub.answer(response, one, asked.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stub: TranscriberStub = {
    url: `http://127.0.0.1:${port}/v1`,
    asked,
    answer: hear,
    async close() {
      if (!server.listening) return;
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return stub;
}
