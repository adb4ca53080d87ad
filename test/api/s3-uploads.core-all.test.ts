/** Uploads into a bucket: by tus, as a form and raw, over connections that break and processes that die. */

import { createHash, randomBytes, randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { closeRedis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { fetch } from 'soundpost-testing/http';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { Upload } from 'tus-js-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, useClips, useService } from './api-fixture.ts';
import { CuttingProxy } from './cutting-proxy.ts';

const MIB = 1024 ** 2;
const CHUNK = 'application/offset+octet-stream';
const SECRET_KEY = 'what two API processes share, of 32 bytes or more';

const s3 = await S3Server.start();
const proxy = await CuttingProxy.open();
const clip = useClips('tone.mp4');
const service = useService({
  environment: { ...s3.environment('ups'), PUBLIC_URL: proxy.url, SECRET_KEY },
});
/** Told soon that the bucket is away: on a busy machine also when it is not, so that only who asks for that asks here. */
const impatient = useService({
  environment: { ...s3.environment('impatient'), STORAGE_DEADLINE_SECONDS: '1' },
  parts: [],
});
/** Nobody works there before a test wants it. */
const idle = useService({ environment: s3.environment('idle'), parts: [] });

beforeAll(() => proxy.leadTo(service().url));
afterAll(async () => {
  await proxy.close();
  await s3.close();
});
beforeEach(() => {
  s3.fault = () => undefined;
});

const below = (prefix: string): string[] =>
  s3.contents().filter((key) => key.startsWith(`${prefix}/`) && !key.endsWith('/soundpost-mark.json'));
const stored = async (file: string, prefix = 'ups'): Promise<Buffer> =>
  buffer((await s3.store.getObject('', `${prefix}/uploads/${file}`))?.content ?? Readable.from([]));

/** A video that is mostly padding. */
async function largeVideo(sizeBytes: number): Promise<Buffer> {
  const start = await readFile(clip('tone.mp4'));
  return Buffer.concat([start, randomBytes(sizeBytes - start.length)]);
}

function upload(bytes: Buffer, settings: object = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const run = new Upload(bytes as unknown as Blob, {
      endpoint: `${proxy.url}/v1/uploads`,
      headers: { 'X-API-Key': service().key },
      metadata: { filename: 'talk.mp4', filetype: 'video/mp4' },
      retryDelays: [0, 10, 10, 10, 100, 1000],
      onError: reject,
      onSuccess: () => resolve(run.url?.split('/').at(-1) ?? ''),
      ...settings,
    });
    run.start();
  });
}

function tus(
  base: string,
  method: string,
  file: string,
  headers: Record<string, string> = {},
  body?: Buffer,
) {
  const all = { 'tus-resumable': '1.0.0', ...(body ? { 'content-type': CHUNK } : {}), ...headers };
  const ask = { headers: all, ...(body ? { body } : {}) };
  return service().call(method, `${base}/v1/uploads${file === '' ? '' : `/${file}`}`, ask);
}

const created = async (sizeBytes: number): Promise<string> =>
  (await tus(service().url, 'POST', '', { 'upload-length': String(sizeBytes) })).body.data.file;
const patched = (base: string, file: string, offset: number, body: Buffer, headers = {}): Promise<Answer> =>
  tus(base, 'PATCH', file, { 'upload-offset': String(offset), ...headers }, body);
const offsetOf = async (base: string, file: string): Promise<number> =>
  Number((await tus(base, 'HEAD', file)).headers['upload-offset']);

it.runIf(currentRun === 'core')(
  'a client of tus goes on where it was cut, three times over, and the object is what it sent',
  async () => {
    const bytes = await largeVideo(7 * MIB);
    const cuts = Array.from({ length: 3 }, () => ({
      afterBytes: randomInt(1000, 2 * MIB),
      serverHears: true,
    }));
    proxy.breakAfter(...cuts);
    const file = await upload(bytes);
    expect(proxy.broken).toBe(3);
    expect((await stored(file)).equals(bytes), JSON.stringify(cuts)).toBe(true);
    expect(below('ups')).toEqual([`ups/uploads/${file}`]);
    const { body } = await service().call('GET', `/v1/uploads/${file}`);
    expect(body.data).toMatchObject({ file, size: bytes.length, complete: true });
    await service().call('DELETE', `/v1/uploads/${file}`);
    expect(below('ups')).toEqual([]);
  },
);

describe.runIf(currentRun === 'all')('two API processes', () => {
  let home: ServiceHome;
  beforeAll(async () => {
    home = await ServiceHome.make({
      REDIS_URL: service().redis.url,
      PUBLIC_URL: proxy.url,
      SECRET_KEY,
      ...s3.environment('ups'),
    });
  });
  afterAll(() => home.remove());

  it('one is killed in the middle of a chunk, the other goes on with what it has stored', async () => {
    const bytes = await largeVideo(17 * MIB);
    const dying = home.start('api');
    const base = await dying.says(/^API\s+(http\S+)/m);
    const file = await created(bytes.length);
    expect((await patched(base, file, 0, bytes.subarray(0, 6 * MIB))).status).toBe(204);
    s3.fault = ({ query }) => (query.partNumber === '3' ? { kind: 'hang' } : undefined);
    const broken = patched(base, file, 6 * MIB, bytes.subarray(6 * MIB)).catch(() => 'broken');
    await until('the third part is on its way', () =>
      s3.requests.some(({ key, query }) => key.endsWith(file) && query.partNumber === '3'),
    );
    dying.signal('SIGKILL');
    expect(await broken).toBe('broken');
    s3.fault = () => undefined;
    // Its lease has to run out, which takes 10 s.
    const offset = await until('another process may write', async () => {
      const answer = await tus(service().url, 'HEAD', file);
      return answer.status === 200 && Number(answer.headers['upload-offset']);
    });
    expect(offset).toBe(10 * MIB);
    expect((await patched(service().url, file, offset, bytes.subarray(offset))).status).toBe(204);
    expect((await stored(file)).equals(bytes)).toBe(true);
    expect(below('ups')).toEqual([`ups/uploads/${file}`]);
    await service().call('DELETE', `/v1/uploads/${file}`);
  });
});

describe.runIf(currentRun === 'all')('a checksum that does not fit', () => {
  const sha1 = (bytes: Buffer): Record<string, string> => ({
    'upload-checksum': `sha1 ${createHash('sha1').update(bytes).digest('base64')}`,
  });

  it.each([MIB, 5 * MIB, 9 * MIB])('leaves the upload where it was, at byte %i', async (offset) => {
    const bytes = await largeVideo(13 * MIB);
    const { url } = service();
    const file = await created(bytes.length);
    const before = bytes.subarray(0, offset);
    expect((await patched(url, file, 0, before, sha1(before))).status).toBe(204);
    const damaged = Buffer.from(bytes.subarray(offset));
    damaged[500] = (damaged[500] ?? 0) ^ 1;
    const refused = await patched(url, file, offset, damaged, sha1(bytes.subarray(offset)));
    expect(refused.status).toBe(460);
    expect(await offsetOf(url, file)).toBe(offset);
    expect(
      (await patched(url, file, offset, bytes.subarray(offset), sha1(bytes.subarray(offset)))).status,
    ).toBe(204);
    expect((await stored(file)).equals(bytes)).toBe(true);
    await service().call('DELETE', `/v1/uploads/${file}`);
    expect(below('ups')).toEqual([]);
  });
});

it.runIf(currentRun === 'all')('what is no media is refused with its last chunk, and gone', async () => {
  const page = Buffer.concat([Buffer.from('<html>'), Buffer.alloc(6 * MIB)]);
  const file = await created(page.length);
  const answer = await patched(service().url, file, 0, page);
  expect([answer.status, answer.body.error.code]).toEqual([400, 'INVALID_VIDEO']);
  expect((await tus(service().url, 'HEAD', file)).status).toBe(404);
  expect(below('ups')).toEqual([]);
});

it.runIf(currentRun === 'all')(
  'parts that a rule of the bucket has removed before they came together: the upload is gone, and said to be',
  async () => {
    const bytes = await largeVideo(6 * MIB);
    const file = await created(bytes.length);
    s3.fault = ({ method, query }) =>
      method === 'POST' && query.uploadId !== undefined
        ? { kind: 'answer', status: 403, code: 'AccessDenied' }
        : undefined;
    expect((await patched(service().url, file, 0, bytes)).status).toBe(503);
    s3.fault = () => undefined;
    for (const { key, uploadId } of s3.store.unfinished()) if (key.endsWith(file)) s3.store.abort(uploadId);
    expect((await tus(service().url, 'HEAD', file)).status).toBe(404);
    expect((await patched(service().url, file, bytes.length, Buffer.alloc(0))).status).toBe(404);
    expect((await tus(service().url, 'DELETE', file)).status).toBe(204);
    expect(below('ups').filter((key) => key.includes(file))).toEqual([]);
  },
);

it.runIf(currentRun === 'all')('an unfinished upload that is deleted leaves nothing', async () => {
  const file = await created(12 * MIB);
  await patched(service().url, file, 0, randomBytes(6 * MIB));
  expect(below('ups')).toHaveLength(2);
  expect((await tus(service().url, 'DELETE', file)).status).toBe(204);
  expect(below('ups')).toEqual([]);
});

it.each(rowsOfRun(['raw', 'form'], 1))(
  'a large file sent %s is one object, and two jobs read it',
  async (how) => {
    const bytes = await largeVideo(6 * MIB);
    const form = new FormData();
    form.set('file', new Blob([new Uint8Array(bytes)]), 'talk.mp4');
    const ask = how === 'raw' ? { body: bytes, headers: { 'content-type': 'video/mp4' } } : { body: form };
    const answer = await service().call('POST', '/v1/uploads', ask);
    expect(answer.status).toBe(201);
    const { file } = answer.body.data;
    expect((await stored(file)).equals(bytes)).toBe(true);
    const job = { source: { type: 'upload', file }, output: { format: 'mp3' } };
    const [one, two] = await Promise.all([service().run(job), service().run(job)]);
    expect([one.status, two.status]).toEqual(['completed', 'completed']);
    await service().call('DELETE', `/v1/uploads/${file}`);
    expect(below('ups').filter((key) => key.includes('/uploads/'))).toEqual([]);
  },
);

it.runIf(currentRun === 'all')('a sender that hangs up in the middle of a file leaves nothing', async () => {
  const sending = service().call('POST', `${proxy.url}/v1/uploads`, {
    body: await largeVideo(11 * MIB),
    headers: { 'content-type': 'video/mp4' },
  });
  proxy.breakAfter({ afterBytes: 7 * MIB, serverHears: true });
  await expect(sending).rejects.toThrow();
  await until('its parts are gone', () => below('ups').every((key) => !key.includes('/uploads/')));
});

it.runIf(currentRun === 'core')(
  'while the bucket hangs, an upload is answered 503 after the deadline, and goes on afterwards',
  async () => {
    const bytes = await largeVideo(MIB);
    const ask = (method: string, path: string, headers: object, body?: Buffer): Promise<Answer> =>
      impatient().call(method, `/v1/uploads${path}`, {
        headers: { 'tus-resumable': '1.0.0', ...headers },
        ...(body ? { body } : {}),
      });
    const begin = (sizeBytes: number): Promise<Answer> =>
      ask('POST', '', { 'upload-length': String(sizeBytes) });
    const file = await until('an upload is begun', async () => (await begin(bytes.length)).body.data?.file);
    const append = (offset: number): Promise<Answer> =>
      ask(
        'PATCH',
        `/${file}`,
        { 'content-type': CHUNK, 'upload-offset': String(offset) },
        bytes.subarray(offset),
      );
    // As clients do: what was kept of an answer that came too late is not sent again.
    const goOn = async (): Promise<boolean> => {
      const head = await ask('HEAD', `/${file}`, {});
      if (head.status !== 200) return false;
      const offset = Number(head.headers['upload-offset']);
      return offset === bytes.length || (await append(offset)).status === 204;
    };
    const isReady = async (): Promise<boolean> =>
      (await fetch(`${impatient().url}/health/ready`)).status === 200;
    await until('the bucket is known to answer', isReady);
    s3.fault = () => ({ kind: 'hang' });
    const answers = await Promise.all([append(0), begin(1000)]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503]);
    s3.fault = () => undefined;
    await until('the upload goes on', goOn);
    expect((await stored(file, 'impatient')).equals(bytes)).toBe(true);
  },
);

it.runIf(currentRun === 'core')('the janitor removes what has expired, complete or not', async () => {
  const bytes = await largeVideo(6 * MIB);
  const files: string[] = [];
  for (const body of [bytes, bytes.subarray(0, 1000)]) {
    const headers = {
      'tus-resumable': '1.0.0',
      'upload-length': String(bytes.length),
      'content-type': CHUNK,
    };
    const answer = await idle().call('POST', '/v1/uploads', { headers, body });
    expect(answer.status).toBe(201);
    files.push(answer.body.data.file);
  }
  expect(below('idle')).toHaveLength(3);
  const redis = connectPatiently(idle().redis.url);
  const overMs = Date.now() - 5000;
  for (const file of files) {
    expect((await idle().call('GET', `/v1/uploads/${file}`)).status).toBe(200);
    // When its time is over.
    await redis.hset(ownKey('upload', file), 'expiresAtMs', overMs);
    await redis.zadd(ownKey('uploads'), 'XX', overMs, file);
    expect((await idle().call('GET', `/v1/uploads/${file}`)).status).toBe(404);
  }
  await closeRedis(redis);
  // A worker sweeps when it starts.
  await idle().startWorker();
  await until('nothing is left', () => below('idle').length === 0);
});
