/** tus 1.0: an upload in pieces, over connections that break. Chapters are those of the protocol. */

import { createHash, randomBytes, randomInt } from 'node:crypto';
import { appendFile, readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { until } from 'soundpost-testing/until';
import { Upload } from 'tus-js-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uploadLease } from '../../src/jobs/uploads/record.ts';
import { type Answer, type Ask, useClips, useService } from './api-fixture.ts';
import { CuttingProxy } from './cutting-proxy.ts';

const MAX_INPUT_BYTES = 8_000_000;
const CHUNK = 'application/offset+octet-stream';

const proxy = await CuttingProxy.open();
const clip = useClips('tone.mp4');
const service = useService({
  environment: { MAX_INPUT_BYTES: String(MAX_INPUT_BYTES), PUBLIC_URL: proxy.url },
});
let redis: Redis;

beforeAll(() => {
  proxy.leadTo(service().url);
  redis = connectPatiently(service().redis.url);
});
afterAll(async () => {
  await closeRedis(redis);
  await proxy.close();
});

const video = (): Promise<Buffer> => readFile(clip('tone.mp4'));
const recordKey = (file: string): string => `{soundpost}:sp:upload:${file}`;
const folder = (): string => join(service().dataDir, 'uploads');
const incoming = (file: string): string => join(folder(), '.incoming', file);
const stored = (file: string): Promise<Buffer> => readFile(join(folder(), file));

/** A video that is mostly padding. */
async function largeVideo(sizeBytes: number): Promise<Buffer> {
  const start = await video();
  return Buffer.concat([start, randomBytes(sizeBytes - start.length)]);
}

function tus(method: string, path: string, headers: Record<string, string>, ask: Ask = {}): Promise<Answer> {
  return service().call(method, path, { ...ask, headers: { 'tus-resumable': '1.0.0', ...headers } });
}

async function created(sizeBytes: number, headers: Record<string, string> = {}): Promise<string> {
  const answer = await tus('POST', '/v1/uploads', { 'upload-length': String(sizeBytes), ...headers });
  expect(answer.status).toBe(201);
  return answer.headers.location?.split('/').at(-1) ?? '';
}

function patched(
  file: string,
  offset: number,
  body: Buffer,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return tus(
    'PATCH',
    `/v1/uploads/${file}`,
    { 'content-type': CHUNK, 'upload-offset': String(offset), ...headers },
    { body },
  );
}

async function offsetOf(file: string): Promise<number> {
  const { status, headers } = await tus('HEAD', `/v1/uploads/${file}`, {});
  expect(status).toBe(200);
  return Number(headers['upload-offset']);
}

function refusalOf({ status, body }: Answer): [number, string] {
  return [status, body.error.code];
}

/** Begins to send a chunk and leaves the rest out. */
async function beginChunk(url: string, file: string, offset: number, length: number, bytes: Buffer) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('error', () => undefined);
  const closed = new Promise<string>((resolve) => {
    socket.on('data', (text: string) => {
      answer += text;
    });
    socket.on('close', () => resolve(answer));
  });
  const head = [
    `PATCH /v1/uploads/${file} HTTP/1.1`,
    'Host: test',
    `X-API-Key: ${service().key}`,
    'Tus-Resumable: 1.0.0',
    `Content-Type: ${CHUNK}`,
    `Upload-Offset: ${offset}`,
    `Content-Length: ${length}`,
    '\r\n',
  ];
  socket.write(head.join('\r\n'));
  socket.write(bytes);
  await until('the bytes have arrived', async () => {
    const arrived = await readFile(incoming(file)).catch(() => Buffer.alloc(0));
    return arrived.length === offset + bytes.length;
  });
  return { socket, closed };
}

describe('discovery', () => {
  it('tells version, extensions, checksums and the largest size, without a key', async () => {
    for (const path of ['/v1/uploads', '/v1/uploads/upl_0000000000000000', '/audio-extract/v1/uploads']) {
      const { status, headers } = await service().call('OPTIONS', path, { key: null });
      expect(status).toBe(204);
      expect(headers).toMatchObject({
        'tus-resumable': '1.0.0',
        'tus-version': '1.0.0',
        'tus-extension': 'creation,creation-with-upload,expiration,termination,checksum',
        'tus-max-size': String(MAX_INPUT_BYTES),
        'tus-checksum-algorithm': 'sha1,sha256,sha512,md5',
      });
    }
  });
});

describe('a client of tus', () => {
  /** Uploads that the client began; whoever resumes begins one. */
  let begun = 0;

  function upload(bytes: Buffer, endpoint = `${proxy.url}/v1/uploads`): Promise<string> {
    return new Promise((resolve, reject) => {
      const run = new Upload(bytes as unknown as Blob, {
        endpoint,
        headers: { 'X-API-Key': service().key },
        metadata: { filename: 'talk.mp4', filetype: 'video/mp4' },
        retryDelays: [0, 10, 10, 10],
        onBeforeRequest: (request) => {
          begun += request.getMethod() === 'POST' ? 1 : 0;
        },
        onError: reject,
        onSuccess: () => resolve(run.url?.split('/').at(-1) ?? ''),
      });
      run.start();
    });
  }

  it('resumes an upload that was cut at a random byte, three times over', async () => {
    const bytes = await largeVideo(3_000_000);
    const cuts = Array.from({ length: 3 }, () => ({
      afterBytes: randomInt(1000, 900_000),
      serverHears: true,
    }));
    begun = 0;
    proxy.breakAfter(...cuts);
    const file = await upload(bytes);
    expect([proxy.broken, begun], JSON.stringify(cuts)).toEqual([3, 1]);
    expect((await stored(file)).equals(bytes), JSON.stringify(cuts)).toBe(true);
    const { body } = await service().call('GET', `/v1/uploads/${file}`);
    expect(body.data).toMatchObject({ file, size: bytes.length, complete: true });
  });

  it('resumes although the server still waits on the broken connection', async () => {
    const bytes = await largeVideo(1_000_000);
    begun = 0;
    proxy.breakAfter({ afterBytes: randomInt(1000, 900_000), serverHears: false });
    const file = await upload(bytes);
    expect([proxy.broken, begun]).toEqual([1, 1]);
    expect((await stored(file)).equals(bytes)).toBe(true);
  });

  it('uploads under the prefix what a job then takes as its source', async () => {
    proxy.breakAfter({ afterBytes: 5000, serverHears: true });
    const file = await upload(await video(), `${proxy.url}/audio-extract/v1/uploads`);
    const job = await service().run({ source: { type: 'upload', file }, output: { format: 'mp3' } });
    expect(job).toMatchObject({ status: 'completed', inputFile: { name: 'talk.mp4' } });
  });
});

describe('creation', () => {
  it('answers where the upload is, and that nothing of it is there yet', async () => {
    for (const prefix of ['', '/audio-extract']) {
      const answer = await tus('POST', `${prefix}/v1/uploads`, { 'upload-length': '1000' });
      const { file, expiresAt } = answer.body.data;
      expect(file).toMatch(/^upl_[0-9a-f]{16}$/);
      expect(answer.status).toBe(201);
      expect(answer.body.data).toEqual({ file, size: 1000, expiresAt, complete: false });
      expect(answer.headers.location).toBe(`${proxy.url}${prefix}/v1/uploads/${file}`);
      expect(answer.headers['tus-resumable']).toBe('1.0.0');
      expect(Date.parse(answer.headers['upload-expires'] ?? '')).toBe(
        Math.floor(Date.parse(expiresAt) / 1000) * 1000,
      );
    }
  });

  it('lets no page of elsewhere in by itself', async () => {
    const answer = await tus('POST', '/v1/uploads', { 'upload-length': '1', origin: 'https://a.example' });
    expect(answer.status).toBe(201);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('keeps the metadata as it came', async () => {
    const metadata = `filename ${Buffer.from('grüße.mp4').toString('base64')},is_draft`;
    const file = await created(1000, { 'upload-metadata': metadata });
    const { headers } = await tus('HEAD', `/v1/uploads/${file}`, {});
    expect(headers).toMatchObject({
      'upload-metadata': metadata,
      'upload-length': '1000',
      'upload-offset': '0',
      'cache-control': 'no-store',
    });
  });

  it.each([
    ['too large', { 'upload-length': String(MAX_INPUT_BYTES + 1) }, 413, 'PAYLOAD_TOO_LARGE'],
    ['empty', { 'upload-length': '0' }, 400, 'INVALID_VIDEO'],
    ['of no length', {}, 400, 'INVALID_REQUEST'],
    ['of a length to be told later', { 'upload-defer-length': '1' }, 501, 'INVALID_REQUEST'],
    ['of a negative length', { 'upload-length': '-1' }, 400, 'INVALID_REQUEST'],
    ['of a length that is none', { 'upload-length': '1e3' }, 400, 'INVALID_REQUEST'],
    ['with malformed metadata', { 'upload-length': '1', 'upload-metadata': 'a b c' }, 400, 'INVALID_REQUEST'],
    [
      'put together from others',
      { 'upload-length': '1', 'upload-concat': 'partial' },
      501,
      'INVALID_REQUEST',
    ],
  ])('is refused for an upload that is %s', async (_what, headers, status, code) => {
    expect(refusalOf(await tus('POST', '/v1/uploads', headers))).toEqual([status, code]);
  });

  it('is refused to another version of tus', async () => {
    const answer = await tus('POST', '/v1/uploads', { 'tus-resumable': '0.2.2', 'upload-length': '1000' });
    expect(refusalOf(answer)).toEqual([412, 'INVALID_REQUEST']);
    expect(answer.headers['tus-version']).toBe('1.0.0');
  });

  it('may bring all of the bytes, or some', async () => {
    const bytes = await video();
    const headers = { 'content-type': CHUNK, 'upload-length': String(bytes.length) };
    const whole = await tus('POST', '/v1/uploads', headers, { body: bytes });
    expect(whole.headers['upload-offset']).toBe(String(bytes.length));
    expect(whole.body.data).toMatchObject({ size: bytes.length, complete: true });
    expect((await stored(whole.body.data.file)).equals(bytes)).toBe(true);
    const half = await tus('POST', '/v1/uploads', headers, { body: bytes.subarray(0, 500) });
    expect(half.headers['upload-offset']).toBe('500');
    const { file } = half.body.data;
    expect((await patched(file, 500, bytes.subarray(500))).status).toBe(204);
    expect((await stored(file)).equals(bytes)).toBe(true);
  });

  it('that brings more than was announced is refused', async () => {
    const headers = { 'content-type': CHUNK, 'upload-length': '100' };
    const answer = await tus('POST', '/v1/uploads', headers, { body: await video() });
    expect(refusalOf(answer)).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });
});

describe('a chunk', () => {
  it('moves the offset, and the last one makes a source of the upload', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    const source = { source: { type: 'upload', file }, output: { format: 'mp3' } };
    const first = await patched(file, 0, bytes.subarray(0, 700));
    expect([first.status, first.headers['upload-offset'], first.bytes.length]).toEqual([204, '700', 0]);
    expect(first.headers['upload-expires']).toBeDefined();
    expect(await offsetOf(file)).toBe(700);
    expect((await service().call('GET', `/v1/uploads/${file}`)).body.data.complete).toBe(false);
    const early = await service().call('POST', '/v1/extract', { json: source });
    expect(refusalOf(early)).toEqual([400, 'INVALID_SOURCE']);
    await patched(file, 700, bytes.subarray(700));
    expect(await offsetOf(file)).toBe(bytes.length);
    expect(await service().run(source)).toMatchObject({ status: 'completed' });
  });

  it('is stored where the storage has complete uploads, without a second copy', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    await patched(file, 0, bytes);
    expect((await stored(file)).equals(bytes)).toBe(true);
    expect(await readdir(join(folder(), '.incoming'))).not.toContain(file);
  });

  it.each([
    ['at another offset', { 'upload-offset': '5' }, 409, 'INVALID_REQUEST'],
    ['at an offset that is none', { 'upload-offset': 'x' }, 400, 'INVALID_REQUEST'],
    ['of another type', { 'content-type': 'video/mp4' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['in another version of tus', { 'tus-resumable': '2.0.0' }, 412, 'INVALID_REQUEST'],
  ])('is refused %s', async (_what, headers, status, code) => {
    const file = await created(1000);
    expect(refusalOf(await patched(file, 0, Buffer.alloc(10), headers))).toEqual([status, code]);
    expect(await offsetOf(file)).toBe(0);
  });

  it('is refused without an offset, or without tus', async () => {
    const file = await created(1000);
    const ask = { body: Buffer.alloc(10), headers: { 'content-type': CHUNK } };
    const path = `/v1/uploads/${file}`;
    expect(refusalOf(await tus('PATCH', path, ask.headers, ask))).toEqual([400, 'INVALID_REQUEST']);
    expect(refusalOf(await service().call('PATCH', path, ask))).toEqual([412, 'INVALID_REQUEST']);
  });

  it('is refused beyond the announced length', async () => {
    const file = await created(1000);
    const answer = await patched(file, 0, Buffer.alloc(1001));
    expect(refusalOf(answer)).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(await offsetOf(file)).toBe(0);
  });

  it('that completes no media is refused, and the upload is gone', async () => {
    const page = Buffer.from('<html></html>');
    const file = await created(page.length);
    expect(refusalOf(await patched(file, 0, page))).toEqual([400, 'INVALID_VIDEO']);
    expect((await tus('HEAD', `/v1/uploads/${file}`, {})).status).toBe(404);
    expect(await readdir(folder(), { recursive: true })).not.toContain(file);
    expect(await redis.exists(recordKey(file))).toBe(0);
  });

  it('without bytes changes nothing, also after the last', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    expect((await patched(file, 0, Buffer.alloc(0))).status).toBe(204);
    await patched(file, 0, bytes);
    const answer = await patched(file, bytes.length, Buffer.alloc(0));
    expect([answer.status, answer.headers['upload-offset']]).toEqual([204, String(bytes.length)]);
    expect((await stored(file)).equals(bytes)).toBe(true);
  });

  it('may come as a POST that says what it means', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    const headers = { 'content-type': CHUNK, 'upload-offset': '0', 'x-http-method-override': 'PATCH' };
    const answer = await tus('POST', `/v1/uploads/${file}`, headers, { body: bytes });
    expect([answer.status, answer.headers['upload-offset']]).toEqual([204, String(bytes.length)]);
  });
});

describe('an upload whose process died', () => {
  it('with all bytes there is finished by the next question', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    await appendFile(incoming(file), bytes);
    expect(await offsetOf(file)).toBe(bytes.length);
    expect((await stored(file)).equals(bytes)).toBe(true);
    expect((await service().call('GET', `/v1/uploads/${file}`)).body.data.complete).toBe(true);
  });

  it('between handing over and saying so is complete', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    await patched(file, 0, bytes);
    await redis.hset(recordKey(file), 'state', 'incomplete');
    expect(await offsetOf(file)).toBe(bytes.length);
    expect((await service().call('GET', `/v1/uploads/${file}`)).body.data.complete).toBe(true);
  });

  it('whose bytes are lost is unknown', async () => {
    const file = await created(1000);
    await redis.hset(recordKey(file), 'sizeBytes', '1001');
    const bytes = await video();
    const other = await created(bytes.length);
    await patched(other, 0, bytes);
    await redis.hset(recordKey(other), 'state', 'incomplete', 'sizeBytes', '5');
    expect((await tus('HEAD', `/v1/uploads/${other}`, {})).status).toBe(404);
    expect((await tus('HEAD', `/v1/uploads/${file}`, {})).status).toBe(200);
  });
});

describe('checksum', () => {
  const checksumOf = (algorithm: string, bytes: Buffer): Record<string, string> => ({
    'upload-checksum': `${algorithm} ${createHash(algorithm).update(bytes).digest('base64')}`,
  });

  it.each(['sha1', 'sha256', 'sha512', 'md5'])('%s that fits lets the bytes in', async (algorithm) => {
    const bytes = await video();
    const file = await created(bytes.length);
    const [a, b] = [bytes.subarray(0, 999), bytes.subarray(999)];
    expect((await patched(file, 0, a, checksumOf(algorithm, a))).status).toBe(204);
    expect((await patched(file, 999, b, checksumOf(algorithm, b))).status).toBe(204);
    expect((await stored(file)).equals(bytes)).toBe(true);
  });

  it('that does not fit leaves the upload as it was', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    await patched(file, 0, bytes.subarray(0, 100));
    const damaged = Buffer.from(bytes.subarray(100));
    damaged[500] = (damaged[500] ?? 0) ^ 1;
    const answer = await patched(file, 100, damaged, checksumOf('sha1', bytes.subarray(100)));
    expect(refusalOf(answer)).toEqual([460, 'INVALID_REQUEST']);
    expect(await offsetOf(file)).toBe(100);
    expect((await patched(file, 100, bytes.subarray(100))).status).toBe(204);
    expect((await stored(file)).equals(bytes)).toBe(true);
  });

  it('that does not fit at creation leaves an empty upload nobody knows', async () => {
    const bytes = await video();
    const headers = { 'content-type': CHUNK, 'upload-length': String(bytes.length) };
    const wrong = checksumOf('sha1', Buffer.from('else'));
    const answer = await tus('POST', '/v1/uploads', { ...headers, ...wrong }, { body: bytes });
    expect(refusalOf(answer)).toEqual([460, 'INVALID_REQUEST']);
    expect(answer.headers.location).toBeUndefined();
  });

  it.each([
    'crc32 AAAAAA==',
    'sha1',
    'sha1 ',
    'sha1 AAAA',
    'constructor AAAA',
    'sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk= x',
  ])('%j is refused', async (header) => {
    const file = await created(1000);
    const answer = await patched(file, 0, Buffer.alloc(10), { 'upload-checksum': header });
    expect(refusalOf(answer)).toEqual([400, 'INVALID_REQUEST']);
    expect(await offsetOf(file)).toBe(0);
  });

  it('counts only for a whole chunk: what arrived of a broken one is dropped', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    await patched(file, 0, bytes.subarray(0, 100));
    await redis.hset(recordKey(file), 'uncheckedFrom', '100');
    await appendFile(incoming(file), randomBytes(50));
    expect(await offsetOf(file)).toBe(100);
    expect((await readFile(incoming(file))).equals(bytes.subarray(0, 100))).toBe(true);
  });
});

describe('termination', () => {
  it('makes an upload unknown and removes its bytes, finished or not', async () => {
    const bytes = await video();
    for (const part of [bytes, bytes.subarray(0, 10)]) {
      const file = await created(bytes.length);
      await patched(file, 0, part);
      const { status, headers, bytes: body } = await tus('DELETE', `/v1/uploads/${file}`, {});
      expect([status, headers['tus-resumable'], body.length]).toEqual([204, '1.0.0', 0]);
      expect((await tus('HEAD', `/v1/uploads/${file}`, {})).status).toBe(404);
      expect(await readdir(folder(), { recursive: true })).not.toContain(file);
      expect(await readdir(join(folder(), '.incoming'))).not.toContain(file);
    }
  });
});

describe('ownership', () => {
  it('keeps an unfinished upload from every other key', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    const key = await service().newKey();
    const path = `/v1/uploads/${file}`;
    const chunk = { 'content-type': CHUNK, 'upload-offset': '0' };
    const attempts = [
      await tus('PATCH', path, chunk, { key, body: bytes }),
      await tus('DELETE', path, {}, { key }),
      await service().call('GET', path, { key }),
    ];
    expect(attempts.map(refusalOf)).toEqual(attempts.map(() => [404, 'UPLOAD_NOT_FOUND']));
    expect((await tus('HEAD', path, {}, { key })).status).toBe(404);
    expect(await offsetOf(file)).toBe(0);
  });

  it('is asked for before anything else', async () => {
    const answer = await tus('POST', '/v1/uploads', { 'upload-length': '1000' }, { key: null });
    expect(refusalOf(answer)).toEqual([401, 'UNAUTHORIZED']);
  });
});

describe('two requests for one upload', () => {
  it('never write at once', async () => {
    const bytes = await video();
    const file = await created(bytes.length);
    const older = await beginChunk(service().url, file, 0, bytes.length, bytes.subarray(0, 2000));
    const newer = await patched(file, 0, bytes);
    expect(refusalOf(newer)).toEqual([409, 'INVALID_REQUEST']);
    older.socket.write(bytes.subarray(2000));
    await older.closed;
    expect(await offsetOf(file)).toBe(2000);
    expect((await patched(file, 2000, bytes.subarray(2000))).status).toBe(204);
    expect((await stored(file)).equals(bytes)).toBe(true);
  });

  it('wait for each other for a while, also where another process has it, then one is sent away', async () => {
    const file = await created(1000);
    const lease = uploadLease(file);
    const { holder } = await lease.take(redis, { leaseMs: 30_000 });
    const answer = await patched(file, 0, Buffer.alloc(10));
    expect(refusalOf(answer)).toEqual([423, 'SERVICE_UNAVAILABLE']);
    expect(answer.headers['retry-after']).toBe('1');
    await lease.release(redis, holder);
    expect((await patched(file, 0, Buffer.alloc(10))).status).toBe(204);
  });
});

describe('expiration', () => {
  const brief = useService({ environment: { UPLOAD_TTL_SECONDS: '600' }, parts: [] });
  let records: Redis;
  beforeAll(() => {
    records = connectPatiently(brief().redis.url);
  });
  afterAll(() => closeRedis(records));

  it('makes an unfinished and a finished upload unknown', async () => {
    const bytes = await video();
    const begin = async (headers: Record<string, string>, body?: Buffer) => {
      const answer = await brief().call('POST', '/v1/uploads', {
        headers: { 'tus-resumable': '1.0.0', 'upload-length': String(bytes.length), ...headers },
        ...(body ? { body } : {}),
      });
      const { file, expiresAt } = answer.body.data;
      const leftMs = Date.parse(expiresAt) - Date.now();
      expect(leftMs).toBeGreaterThan(300_000);
      expect(leftMs).toBeLessThan(601_000);
      return file;
    };
    const files = [await begin({}), await begin({ 'content-type': CHUNK }, bytes)];
    for (const file of files) {
      const path = `/v1/uploads/${file}`;
      expect((await brief().call('GET', path)).status).toBe(200);
      // When its time is over.
      await records.hset(recordKey(file), 'expiresAtMs', Date.now() - 5000);
      expect((await brief().call('GET', path)).status).toBe(404);
      const headers = { 'tus-resumable': '1.0.0' };
      expect((await brief().call('HEAD', path, { headers })).status).toBe(404);
      const chunk = { ...headers, 'content-type': CHUNK, 'upload-offset': '0' };
      const answer = await brief().call('PATCH', path, { headers: chunk, body: bytes });
      expect(refusalOf(answer)).toEqual([404, 'UPLOAD_NOT_FOUND']);
      const json = { source: { type: 'upload', file }, output: { format: 'mp3' } };
      expect(refusalOf(await brief().call('POST', '/v1/extract', { json }))).toEqual([400, 'INVALID_SOURCE']);
    }
  });
});
