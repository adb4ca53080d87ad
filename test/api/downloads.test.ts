import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { closeRedis } from 'soundpost-kit/redis/connection';
import { UrlSigner } from 'soundpost-kit/signing/signatures';
import { fetch } from 'soundpost-testing/http';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { beforeAll, describe, expect, it } from 'vitest';
import { deriveSecrets } from '../../src/process/secrets.ts';
import { jobKey } from '../jobs/bullmq-keys.ts';
import { type Answer, type Ask, type Json, SECRET_KEY, useClips, useService } from './api-fixture.ts';

const clip = useClips('tone.mp4');
const OUTPUT_TTL_SECONDS = 600;
const JOB_TTL_SECONDS = 1800;
const service = useService({
  environment: { OUTPUT_TTL_SECONDS: `${OUTPUT_TTL_SECONDS}`, JOB_TTL_SECONDS: `${JOB_TTL_SECONDS}` },
});

let request: Json;
let job: Json;
let path = '';
let whole: Buffer;

beforeAll(async () => {
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  request = { source: { type: 'url', url }, output: { format: 'mp3' } };
  job = await service().run(request);
  path = `/v1/download/${job.jobId}`;
  whole = (await service().call('GET', path)).bytes;
});

const get = (headers: Record<string, string> = {}, ask: Ask = {}): Promise<Answer> =>
  service().call('GET', path, { headers, ...ask });

describe('A4. GET|HEAD /v1/download/{jobId}: the file', () => {
  it('is what the job says it is', async () => {
    const { status, headers } = await get();
    expect(status).toBe(200);
    expect(whole.length).toBe(job.outputFile.size);
    expect(createHash('sha256').update(whole).digest('hex')).toBe(job.outputFile.sha256);
    expect(headers).toMatchObject({
      'content-type': 'audio/mpeg',
      'content-length': String(whole.length),
      'content-disposition': 'attachment; filename=tone.mp3',
      'accept-ranges': 'bytes',
      etag: `"${job.outputFile.sha256}"`,
      'x-content-type-options': 'nosniff',
    });
    expect(headers['content-security-policy']).toContain('sandbox');
  });

  it('HEAD answers the same without the bytes', async () => {
    const head = await service().call('HEAD', path);
    const full = await get();
    const steady = ({ headers }: Answer): object => {
      const {
        date: _,
        ratelimit: _left,
        'x-request-id': _id,
        connection: _c,
        'keep-alive': _k,
        ...rest
      } = headers;
      return rest;
    };
    expect([head.status, head.bytes.length]).toEqual([200, 0]);
    expect(steady(head)).toEqual(steady(full));
  });

  it('of each format has its own type', async () => {
    const types = {
      mp3: 'audio/mpeg',
      aac: 'audio/aac',
      m4a: 'audio/mp4',
      flac: 'audio/flac',
      wav: 'audio/wav',
      ogg: 'audio/ogg',
      opus: 'audio/ogg',
      voice: 'audio/ogg; codecs=opus',
    };
    const outputs = Object.keys(types).map((format) => ({ name: format, format }));
    const { jobId } = await service().run({ source: request.source, outputs });
    const told = outputs.map(async ({ name }) => {
      const { headers } = await service().call('HEAD', `/v1/download/${jobId}?name=${name}`);
      return [name, headers['content-type']];
    });
    expect(Object.fromEntries(await Promise.all(told))).toEqual(types);
  });

  it('comes under the prefix too, where webhooks point to', async () => {
    expect((await service().call('GET', `/audio-extract${path}`)).bytes).toEqual(whole);
  });
});

describe('A4. Downloads: ranges (RFC 9110, 14)', () => {
  const last = (): number => whole.length - 1;

  it.each([
    ['bytes=0-99', () => [0, 99]],
    ['bytes=100-', () => [100, last()]],
    ['bytes=-50', () => [whole.length - 50, last()]],
    ['bytes=0-0', () => [0, 0]],
    ['bytes=100-99999999', () => [100, last()]],
    // A suffix that is longer than the file is all of it (14.1.2).
    ['bytes=-99999999', () => [0, last()]],
    ['Bytes=5-6', () => [5, 6]],
  ])('%s is partial content', async (range, expected) => {
    const [start = 0, end = 0] = expected();
    const { status, headers, bytes } = await get({ range });
    expect(status).toBe(206);
    expect(bytes).toEqual(whole.subarray(start, end + 1));
    expect(headers).toMatchObject({
      'content-range': `bytes ${start}-${end}/${whole.length}`,
      'content-length': String(end - start + 1),
      etag: `"${job.outputFile.sha256}"`,
    });
  });

  it.each(['bytes=99999999-', 'bytes=-0'])(
    '%s is outside of the file: 416, which nothing stores',
    async (range) => {
      const { status, headers, body } = await get({ range });
      expect({ status, ...body }).toEqual({
        status: 416,
        success: false,
        error: { code: 'INVALID_REQUEST', message: expect.stringContaining(`${whole.length} bytes`) },
      });
      expect(headers['content-range']).toBe(`bytes */${whole.length}`);
      expect(headers['cache-control']).toBe('no-store');
      expect(headers).not.toHaveProperty('content-disposition');
    },
  );

  it.each(['bytes=0-1,5-6', 'bytes=9-5', 'bytes=x-y', 'bytes=-', 'seconds=0-1', '0-1', 'bytes=1-2-3'])(
    '%s gets the whole file',
    async (range) => {
      const { status, headers, bytes } = await get({ range });
      expect(status).toBe(200);
      expect(bytes).toEqual(whole);
      expect(headers).not.toHaveProperty('content-range');
    },
  );

  it('HEAD knows no ranges (14.2)', async () => {
    const { status, headers } = await service().call('HEAD', path, { headers: { range: 'bytes=0-1' } });
    expect([status, headers['content-length']]).toEqual([200, String(whole.length)]);
  });

  it('a download that broke off is continued with If-Range, and only of the same file', async () => {
    const etag = `"${job.outputFile.sha256}"`;
    const range = 'bytes=1000-';
    const first = whole.subarray(0, 1000);
    const rest = await get({ range, 'if-range': etag });
    expect(rest.status).toBe(206);
    expect(Buffer.concat([first, rest.bytes])).toEqual(whole);
    for (const other of ['"other"', `W/${etag}`, new Date().toUTCString()]) {
      expect((await get({ range, 'if-range': other })).status).toBe(200);
    }
  });
});

describe('A4. Downloads: conditions (RFC 9110, 13)', () => {
  it.each([
    ['the ETag', (etag: string) => etag],
    ['one of several', (etag: string) => `"a", ${etag}, "b"`],
    ['the weak form', (etag: string) => `W/${etag}`],
    ['any', () => '*'],
  ])('If-None-Match with %s is 304', async (_what, field) => {
    const etag = `"${job.outputFile.sha256}"`;
    for (const method of ['GET', 'HEAD']) {
      const { status, headers, bytes } = await service().call(method, path, {
        headers: { 'if-none-match': field(etag) },
      });
      expect([status, headers.etag, bytes.length]).toEqual([304, etag, 0]);
    }
  });

  it('If-None-Match with another tag gets the file', async () => {
    expect((await get({ 'if-none-match': '"other"' })).status).toBe(200);
  });

  it('a condition goes before a range', async () => {
    const { status } = await get({ 'if-none-match': `"${job.outputFile.sha256}"`, range: 'bytes=0-1' });
    expect(status).toBe(304);
  });

  it('fetch, which sends Cache-Control along, is told as well', async () => {
    const { status } = await fetch(`${service().url}${path}`, {
      headers: { 'x-api-key': service().key, 'if-none-match': `"${job.outputFile.sha256}"` },
    });
    expect(status).toBe(304);
  });
});

describe('A4. Downloads: names in any script (RFC 6266)', () => {
  it.each([
    ['with space and "quotes"', 'quotes'],
    ['Grüße, Ümläut', 'German'],
    ['ヴァイオリンの魂柱', 'Japanese'],
    ['🎻 50% off; filename=evil.exe', 'pictures and syntax'],
  ])('%s', async (filename) => {
    const { jobId } = await service().run({ ...request, options: { filename } });
    const { headers } = await service().call('GET', `/v1/download/${jobId}`);
    const field = headers['content-disposition'] ?? '';
    expect(field).toMatch(/^attachment; filename=/);
    expect(nameOf(field)).toBe(`${filename}.mp3`);
    // For whoever knows only the old form: printable ASCII, and quoted as a whole.
    expect(field).toMatch(/^[\x20-\x7e]+$/);
    expect(/filename=(?:"(?:[^"\\]|\\.)*"|[\w.!#$&+^`|~-]+)(?:;|$)/.test(field)).toBe(true);
  });

  /** What a browser takes: filename* before filename (RFC 6266 4.3, RFC 8187). */
  function nameOf(field: string): string {
    const extended = /filename\*=UTF-8''([^;]+)/i.exec(field)?.[1];
    if (extended !== undefined) return decodeURIComponent(extended);
    const quoted = /filename="((?:[^"\\]|\\.)*)"/.exec(field)?.[1];
    return quoted?.replaceAll(/\\(.)/g, '$1') ?? /filename=([^;]+)/.exec(field)?.[1] ?? '';
  }

  it('an upload brings its name along, cut to its length where it is too long', async () => {
    const form = new FormData();
    form.append('request', JSON.stringify({ output: { format: 'mp3' } }));
    // The cut falls into the middle of a character.
    form.append('file', new Blob([await readFile(clip('tone.mp4'))]), `${'a'.repeat(199)}🎻.mp4`);
    const { body } = await service().call('POST', '/v1/extract', { body: form });
    const { outputFile, jobId } = await service().ended(body.data.jobId);
    expect(outputFile.filename).toMatch(/^a{199}.?\.mp3$/);
    expect((await service().call('GET', `/v1/download/${jobId}`)).status).toBe(200);
  });
});

describe('A4. Downloads: who may', () => {
  const signed = (): URL => new URL(job.outputFile.url);
  const ask = (url: URL): Promise<Answer> => service().call('GET', url.href, { key: null });

  it('whoever has the signed address, and needs no key', async () => {
    const { status, bytes } = await ask(signed());
    expect(status).toBe(200);
    expect(bytes).toEqual(whole);
    const { headers } = await service().call('HEAD', signed().href, { key: null });
    expect(headers['content-length']).toBe(String(whole.length));
  });

  it.each([
    ['another signature', (url: URL) => url.searchParams.set('signature', '0'.repeat(64))],
    ['a short one', (url: URL) => url.searchParams.set('signature', '0')],
    ['an empty one', (url: URL) => url.searchParams.set('signature', '')],
    ['a later expiry', (url: URL) => url.searchParams.set('expires', '99999999999')],
    ['no expiry', (url: URL) => url.searchParams.delete('expires')],
    ['another rendition', (url: URL) => url.searchParams.set('rendition', 'voice')],
    ['another job', (url: URL) => Object.assign(url, { pathname: '/v1/download/job_0123456789abcdef' })],
    ['two signatures', (url: URL) => url.searchParams.append('signature', '0'.repeat(64))],
  ])('with %s it is 403', async (_what, change) => {
    const url = signed();
    change(url);
    const { status, headers, body } = await ask(url);
    expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
    expect(headers['cache-control']).toBe('no-store');
    expect(headers).not.toHaveProperty('content-disposition');
  });

  it('once the signature has expired it is 410, although the file is still there', async () => {
    const signer = new UrlSigner(deriveSecrets(SECRET_KEY).urlSigning, service().url);
    const address = (expiresAtMs: number): URL => new URL(signer.downloadUrl(job.jobId, expiresAtMs));
    expect((await ask(address(Date.now() + 60_000))).status).toBe(200);
    const { status, headers, body } = await ask(address(Date.now() - 1000));
    expect([status, body.error.code]).toEqual([410, 'FILE_EXPIRED']);
    expect(headers['cache-control']).toBe('no-store');
  });
});

describe('A4. Downloads: before and after', () => {
  it('erased is 410 at once, by key and by signature, and leaves no file', async () => {
    const mine = await service().run(request);
    const erased = await service().call('DELETE', `/v1/jobs/${mine.jobId}`);
    expect([erased.status, erased.body.data.status]).toEqual([200, 'completed']);
    const { url: _, ...kept } = mine.outputFile;
    expect(erased.body.data.outputFile).toEqual(kept);
    expect((await service().job(mine.jobId)).outputFile).toEqual(kept);
    for (const answer of [
      await service().call('GET', `/v1/download/${mine.jobId}`),
      await service().call('GET', mine.outputFile.url, { key: null }),
      await service().call('GET', `/v1/download/${mine.jobId}`, {
        headers: { 'if-none-match': `"${mine.outputFile.sha256}"`, range: 'bytes=0-1' },
      }),
    ]) {
      expect([answer.status, answer.body.error.code]).toEqual([410, 'FILE_EXPIRED']);
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers).not.toHaveProperty('content-disposition');
    }
    // Erasing twice changes nothing.
    expect((await service().call('DELETE', `/v1/jobs/${mine.jobId}`)).status).toBe(200);
  });

  it('after its time it is 410, while the job is known, and 404 afterwards', async () => {
    const key = await service().newKey();
    const mine = await service().run(request, { key });
    const ask = (): Promise<Answer> => service().call('GET', `/v1/download/${mine.jobId}`, { key });
    expect((await ask()).status).toBe(200);
    const { expiresAt } = mine.outputFile;
    const keptSeconds = (Date.parse(expiresAt) - Date.parse(mine.finishedAt)) / 1000;
    expect(Math.abs(keptSeconds - OUTPUT_TTL_SECONDS)).toBeLessThan(60);
    // When the time of the file is over.
    const redis = connectPatiently(service().redis.url);
    const record = jobKey('extract', mine.jobId);
    const result = (await redis.hget(record, 'returnvalue')) ?? '';
    const over = new Date(Date.now() - 5000).toISOString();
    await redis.hset(record, 'returnvalue', result.replaceAll(expiresAt, over));
    const gone = await ask();
    expect([gone.status, gone.body.error.code]).toEqual([410, 'FILE_EXPIRED']);
    const bySignature = await service().call('GET', mine.outputFile.url, { key: null });
    expect([bySignature.status, bySignature.body.error.code]).toEqual([410, 'FILE_EXPIRED']);
    expect((await service().call('GET', `/v1/status/${mine.jobId}`, { key })).status).toBe(200);
    // When that of its record is.
    await redis.hset(record, 'finishedOn', Date.now() - (JOB_TTL_SECONDS + 5) * 1000);
    await closeRedis(redis);
    const forgotten = await ask();
    expect([forgotten.status, forgotten.body.error.code]).toEqual([404, 'JOB_NOT_FOUND']);
    expect((await service().call('GET', `/v1/status/${mine.jobId}`, { key })).status).toBe(404);
    expect((await service().call('GET', '/v1/jobs', { key })).body.data.jobs).toEqual([]);
  });
});
