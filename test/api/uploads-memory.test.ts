/** Decisions A5: memory stays flat whatever the size. Measured on the real process; with TEST_ALL=1 on 2 GiB, and each way to each place. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { S3Server } from '../s3/s3-server.ts';
import { ServiceHome } from '../service.ts';
import { type Json, useClips } from './api-fixture.ts';

const MIB = 1024 * 1024;
const isLong = process.env.TEST_ALL === '1';
const SIZE_BYTES = isLong ? 2048 * MIB : 256 * MIB;
const BOUNDARY = 'a-boundary';
const CHUNK = 'application/offset+octet-stream';
const TIMEOUT_MS = 300_000;

const clip = useClips('tone.mp4');
const s3 = await S3Server.start();
afterAll(() => s3.close());
let home: ServiceHome;
let api = '';
let pid = 0;

/** One process for each way: a peak is never forgotten. */
async function startApi(environment: Record<string, string>): Promise<void> {
  home = await ServiceHome.make(environment);
  const started = home.start('api');
  api = await started.says(/^API\s+(http\S+)/m);
  pid = started.pid;
}
afterEach(() => home.remove());

interface Way {
  readonly name: string;
  readonly method: 'POST' | 'PATCH';
  readonly headers: Readonly<Record<string, string>>;
  /** What stands around the file. */
  readonly before?: string;
  readonly after?: string;
}

const ways: readonly Way[] = [
  { name: 'raw', method: 'POST', headers: { 'content-type': 'video/mp4' } },
  {
    name: 'form',
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    before: `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n`,
    after: `\r\n--${BOUNDARY}--\r\n`,
  },
  {
    name: 'tus',
    method: 'PATCH',
    headers: { 'content-type': CHUNK, 'tus-resumable': '1.0.0', 'upload-offset': '0' },
  },
];

function ask(method: string, path: string, headers: Readonly<Record<string, string>>) {
  return request(`${api}${path}`, { method, headers: { 'x-api-key': home.key, ...headers } });
}

/** A video of the size, made while it is sent. */
async function* bytesOf(sizeBytes: number): AsyncGenerator<Buffer> {
  const start = await readFile(clip('tone.mp4'));
  const block = randomBytes(MIB);
  yield start;
  for (let left = sizeBytes - start.length; left > 0; left -= block.length) {
    yield block.subarray(0, Math.min(left, block.length));
  }
}

/** @returns the id of the upload and the hash of what was sent */
async function send(way: Way, sizeBytes: number): Promise<{ file: string; sha256: string }> {
  const path = way.name === 'tus' ? `/v1/uploads/${await createTus(sizeBytes)}` : '/v1/uploads';
  const sent = ask(way.method, path, way.headers);
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  const hash = createHash('sha256');
  await pipeline(async function* () {
    yield way.before ?? '';
    for await (const chunk of bytesOf(sizeBytes)) {
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

async function createTus(sizeBytes: number): Promise<string> {
  const sent = ask('POST', '/v1/uploads', { 'tus-resumable': '1.0.0', 'upload-length': String(sizeBytes) });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return (await bodyOf(response)).data.file;
}

async function bodyOf(response: IncomingMessage): Promise<Json> {
  const text = Buffer.concat(await response.toArray()).toString();
  return text === '' ? undefined : JSON.parse(text);
}

async function hashOf(content: Readable): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(content, hash);
  return hash.digest('hex');
}

interface Place {
  readonly name: string;
  /** How much larger the process may become than 1 MiB has made it. */
  readonly limitMib: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly stored: (file: string) => Promise<Readable>;
}

const places: readonly Place[] = [
  {
    name: 'a folder',
    limitMib: 64,
    environment: {},
    stored: async (file) => createReadStream(join(home.folder, 'data', 'uploads', file)),
  },
  {
    name: 'a bucket',
    // Several parts of an upload are in memory, and what has been one until it is collected.
    limitMib: 128,
    environment: s3.environment('memory'),
    stored: async (file) =>
      (await s3.store.getObject('', `memory/uploads/${file}`))?.content ?? Readable.from([]),
  },
];

/** The most memory that the process has ever had. */
function peakBytes(): number {
  const kib = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}

describe.each(places)('into $name', ({ name: place, limitMib, environment, stored }) => {
  // Of a bucket the form is what took most, and of a folder raw bytes least.
  const rows = place === 'a bucket' ? ['form'] : ['form', 'tus'];
  it.each(ways.filter(({ name }) => isLong || rows.includes(name)))(
    `${SIZE_BYTES / MIB} MiB by $name pass through the API in less than ${limitMib} MiB of memory`,
    async (way) => {
      await startApi(environment);
      await send(way, MIB);
      const before = peakBytes();
      const { file, sha256 } = await send(way, SIZE_BYTES);
      const grown = peakBytes() - before;
      expect(grown).toBeLessThan(limitMib * MIB);
      expect(await hashOf(await stored(file))).toBe(sha256);
    },
    TIMEOUT_MS,
  );
});
