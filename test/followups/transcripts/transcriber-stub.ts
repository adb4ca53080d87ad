/** A transcriber whose answers a test writes, and who remembers what it was asked. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { Busboy } from '@fastify/busboy';
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

/** By a parser of streams: Node's `formData()` takes a second for a part of ten minutes. */
async function readForm(body: Buffer, type: string): Promise<Pick<Asked, 'audio' | 'fields'>> {
  const parser = new Busboy({ headers: { 'content-type': type } });
  const fields: Record<string, string> = {};
  let audio: Promise<Buffer> | undefined;
  parser.on('field', (name, value) => {
    fields[name] = value;
  });
  parser.on('file', (_name, content) => {
    audio = buffer(content);
  });
  await pipeline(Readable.from([body]), parser);
  return { fields, audio: (await audio) ?? Buffer.alloc(0) };
}

export async function startTranscriber(): Promise<TranscriberStub> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const { audio, fields } = await readForm(body, request.headers['content-type'] ?? '');
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
