/** How much larger the process of an API becomes while it takes in one upload, whatever started it. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { expect } from 'vitest';
import type { Json } from './api-fixture.ts';

export const MIB = 1024 * 1024;
/** Decisions A5. */
export const LIMIT_BYTES = 64 * MIB;
const BOUNDARY = 'a-boundary';
const CHUNK = 'application/offset+octet-stream';

export interface MeasuredApi {
  readonly address: string;
  readonly key: string;
  /** `/proc/<pid>/status` of the API's process. */
  readonly status: () => string | Promise<string>;
}

export function statusOf(pid: number): () => string {
  return () => readFileSync(`/proc/${pid}/status`, 'utf8');
}

export interface Way {
  readonly method: 'POST' | 'PATCH';
  readonly headers: Readonly<Record<string, string>>;
  /** What stands around the file. */
  readonly before?: string;
  readonly after?: string;
}

export const ways = {
  raw: { method: 'POST', headers: { 'content-type': 'video/mp4' } },
  form: {
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    before: `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n`,
    after: `\r\n--${BOUNDARY}--\r\n`,
  },
  tus: {
    method: 'PATCH',
    headers: { 'content-type': CHUNK, 'tus-resumable': '1.0.0', 'upload-offset': '0' },
  },
} as const satisfies Record<string, Way>;

function ask(
  { address, key }: MeasuredApi,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
) {
  return request(`${address}${path}`, { method, headers: { 'x-api-key': key, ...headers }, agent: false });
}

/** A video of the size, made while it is sent. */
async function* bytesOf(clip: string, sizeBytes: number): AsyncGenerator<Buffer> {
  const start = await readFile(clip);
  const block = randomBytes(MIB);
  yield start;
  for (let left = sizeBytes - start.length; left > 0; left -= block.length) {
    yield block.subarray(0, Math.min(left, block.length));
  }
}

interface Sent {
  /** The id of the upload. */
  readonly file: string;
  readonly sha256: string;
}

async function send(api: MeasuredApi, clip: string, way: Way, sizeBytes: number): Promise<Sent> {
  const path = way === ways.tus ? `/v1/uploads/${await createTus(api, sizeBytes)}` : '/v1/uploads';
  const sent = ask(api, way.method, path, way.headers);
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  const hash = createHash('sha256');
  await pipeline(async function* () {
    yield way.before ?? '';
    for await (const chunk of bytesOf(clip, sizeBytes)) {
      hash.update(chunk);
      yield chunk;
    }
    yield way.after ?? '';
  }, sent);
  const [response] = await answered;
  const body = await bodyOf(response);
  expect([201, 204], JSON.stringify(body)).toContain(response.statusCode);
  return { file: body?.data.file ?? path.split('/').at(-1), sha256: hash.digest('hex') };
}

async function createTus(api: MeasuredApi, sizeBytes: number): Promise<string> {
  const sent = ask(api, 'POST', '/v1/uploads', {
    'tus-resumable': '1.0.0',
    'upload-length': String(sizeBytes),
  });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return (await bodyOf(response)).data.file;
}

async function bodyOf(response: IncomingMessage): Promise<Json> {
  const text = Buffer.concat(await response.toArray()).toString();
  return text === '' ? undefined : JSON.parse(text);
}

/** The most memory that the process has ever had. */
async function peakBytes({ status }: MeasuredApi): Promise<number> {
  const kib = /^VmHWM:\s+(\d+) kB/m.exec(await status())?.[1];
  return Number(kib) * 1024;
}

/**
 * Measures against what an upload of 1 MiB has made of the process. A peak is never forgotten: each measurement needs a process of its own.
 * @param clip a small video, which the upload begins with
 */
export async function measureUpload(
  api: MeasuredApi,
  clip: string,
  way: Way,
  sizeBytes: number,
): Promise<Sent & { readonly grownBytes: number }> {
  await send(api, clip, way, MIB);
  const before = await peakBytes(api);
  const sent = await send(api, clip, way, sizeBytes);
  return { ...sent, grownBytes: (await peakBytes(api)) - before };
}
