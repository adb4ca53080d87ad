/** A5. What a key may have in uploads: so many, and so many bytes together. */
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { type Answer, useClips, useService } from './api-fixture.ts';

const LIMIT_BYTES = 1_000_000;
const clip = useClips('tone.mp4');
const service = useService({
  parts: [],
  environment: { UPLOADS_PER_KEY: '3', UPLOAD_BYTES_PER_KEY: `${LIMIT_BYTES}`, UPLOAD_TTL_SECONDS: '600' },
});

const announce = (key: string, bytes: number, more: Record<string, string> = {}): Promise<Answer> =>
  service().call('POST', '/v1/uploads', {
    key,
    headers: { 'tus-resumable': '1.0.0', 'upload-length': `${bytes}`, ...more },
  });

async function sendWhole(key: string, form = false): Promise<Answer> {
  const video = await readFile(clip('tone.mp4'));
  if (!form) {
    return service().call('POST', '/v1/uploads', {
      key,
      body: video,
      headers: { 'content-type': 'video/mp4' },
    });
  }
  const body = new FormData();
  body.set('file', new File([video], 'tone.mp4'));
  return service().call('POST', '/v1/uploads', { key, body });
}

function expectRefused({ status, headers, body }: Answer, rule: string): void {
  expect([status, body.error.code, body.error.message]).toEqual([
    429,
    'RATE_LIMITED',
    expect.stringContaining(rule),
  ]);
  const seconds = Number(headers['retry-after']);
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(12 * 3600);
}

it('of so many, begun and complete ones, each way they come, until one is deleted; another key has its own', async () => {
  const key = await service().newKey();
  const answers = [await announce(key, 10_000), await sendWhole(key), await sendWhole(key, true)];
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  expectRefused(await announce(key, 10), 'may have 3 uploads');
  expectRefused(await sendWhole(key), 'may have 3 uploads');
  expectRefused(await sendWhole(key, true), 'may have 3 uploads');
  expect((await announce(await service().newKey(), 10)).status).toBe(201);

  const { file } = answers[1]?.body.data ?? {};
  expect((await service().call('DELETE', `/v1/uploads/${file}`, { key })).status).toBe(200);
  expect((await sendWhole(key)).status).toBe(201);
});

it('of so many bytes together, announced and complete', async () => {
  const key = await service().newKey();
  expect((await announce(key, LIMIT_BYTES - 20_000)).status).toBe(201);
  expectRefused(await announce(key, 20_001), `${LIMIT_BYTES} bytes in total`);
  const { body } = await service().call('GET', '/v1/usage', { key });
  expect([body.data.uploads, body.data.uploadBytes]).toEqual([
    { limit: 3, used: 1, remaining: 2 },
    { limit: LIMIT_BYTES, used: LIMIT_BYTES - 20_000, remaining: 20_000 },
  ]);
  expect((await announce(key, 20_000)).status).toBe(201);
  expectRefused(await sendWhole(key), `${LIMIT_BYTES} bytes in total`);
});

it('a repeated request with its video inside gets its first answer, although none is left', async () => {
  const key = await service().newKey();
  const data = (await readFile(clip('tone.mp4'))).toString('base64');
  const json = { source: { type: 'data', data }, output: { format: 'mp3' } };
  const extract = (headers: Record<string, string>): Promise<Answer> =>
    service().call('POST', '/v1/extract', { key, json, headers });
  const first = await extract({ 'idempotency-key': 'data' });
  for (let nth = 0; nth < 2; nth += 1) expect((await announce(key, 10)).status).toBe(201);
  expectRefused(await extract({}), 'may have 3 uploads');
  const again = await extract({ 'idempotency-key': 'data' });
  expect([again.status, again.body]).toEqual([202, first.body]);
});

it('many at once are no more than may be', async () => {
  const key = await service().newKey();
  const answers = await Promise.all(Array.from({ length: 40 }, () => announce(key, 1)));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
});

it('a file that is no media leaves its place', async () => {
  const key = await service().newKey();
  for (let nth = 0; nth < 5; nth += 1) {
    const headers = { 'content-type': 'video/mp4' };
    expect((await service().call('POST', '/v1/uploads', { key, body: 'no media', headers })).status).toBe(
      400,
    );
  }
  expect((await sendWhole(key)).status).toBe(201);
});

it('files that come with their job are not counted: jobs have their own limit', async () => {
  const key = await service().newKey();
  for (let nth = 0; nth < 5; nth += 1) {
    const body = new FormData();
    body.set('file', new File([await readFile(clip('tone.mp4'))], 'tone.mp4'));
    body.set('request', JSON.stringify({ output: { format: 'mp3' } }));
    expect((await service().call('POST', '/v1/extract', { key, body })).status).toBe(202);
  }
});

it('Upload-Metadata has at most 4 KiB', async () => {
  // Base64 has groups of four.
  const metadata = (bytes: number) => ({ 'upload-metadata': `filename ${'A'.repeat(bytes)}` });
  expect((await announce(service().key, 10, metadata(4084))).status).toBe(201);
  expect(await announce(service().key, 10, metadata(4088))).toMatchObject({
    status: 400,
    body: { error: { code: 'INVALID_REQUEST', message: expect.stringContaining('4096') } },
  });
});
