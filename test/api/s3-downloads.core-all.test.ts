/** The API and a worker whose files lie in a bucket: downloads, through the API and from the bucket itself. */
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { fetch } from 'soundpost-testing/http';
import { type S3Request, S3Server } from 'soundpost-testing/s3/s3-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Json, useClips, useService } from './api-fixture.ts';

const s3 = await S3Server.start();
afterAll(() => s3.close());
const clip = useClips('tone.mp4');
const service = useService({ environment: s3.environment('through') });
/** Told soon that the bucket is away: on a busy machine also when it is not, so that only who asks for that asks here. */
const impatient = useService({
  environment: { ...s3.environment('impatient'), STORAGE_DEADLINE_SECONDS: '1' },
});
const leading = useService({
  environment: { ...s3.environment('leading'), S3_PUBLIC_ENDPOINT: s3.endpoint },
});

const keysBelow = (prefix: string): string[] => s3.contents().filter((key) => key.startsWith(`${prefix}/`));

async function madeBy(of: typeof service, name = 'tone.mp4'): Promise<Json> {
  const url = await of().outside.file(name, clip('tone.mp4'));
  const job = await of().run({ source: { type: 'url', url: url }, output: { format: 'mp3' } });
  expect(job.error).toBeUndefined();
  return job;
}

describe.runIf(currentRun === 'core')('a result in the bucket', () => {
  let job: Json;
  let whole: Buffer;
  let path = '';
  const get = (headers: Record<string, string> = {}): Promise<Answer> =>
    service().call('GET', path, { headers });

  beforeAll(async () => {
    job = await madeBy(service);
    path = `/v1/download/${job.jobId}`;
    whole = (await get()).bytes;
  });

  it('is what the job says it is, with every header', async () => {
    const { status, headers } = await get();
    expect(status).toBe(200);
    expect(createHash('sha256').update(whole).digest('hex')).toBe(job.outputFile.sha256);
    expect(headers).toMatchObject({
      'content-type': 'audio/mpeg',
      'content-length': String(job.outputFile.size),
      'content-disposition': 'attachment; filename=tone.mp3',
      'accept-ranges': 'bytes',
      etag: `"${job.outputFile.sha256}"`,
    });
  });

  it('is nowhere on the local disk', async () => {
    expect(keysBelow('through')).toEqual([expect.stringMatching(/^through\/files\/job_\w+\/\w+\.mp3$/)]);
    const local = await readdir(service().dataDir, { recursive: true, withFileTypes: true });
    const files = local
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
    expect(files.map((file) => file.slice(service().dataDir.length + 1))).toEqual([]);
  });

  it.each([
    ['bytes=0-9', 206, 0, 10],
    ['bytes=-5', 206, -5, undefined],
    ['bytes=100-', 206, 100, undefined],
  ])('in the range %s', async (range, status, start, end) => {
    const answer = await get({ range });
    expect(answer.status).toBe(status);
    expect(answer.bytes).toEqual(whole.subarray(start, end));
    expect(answer.headers['content-range']).toContain(`/${whole.length}`);
  });

  it('answers HEAD, conditions and ranges that are none', async () => {
    const head = await service().call('HEAD', path);
    expect([head.status, head.bytes.length, head.headers['content-length']]).toEqual([
      200,
      0,
      String(whole.length),
    ]);
    expect((await get({ 'if-none-match': `"${job.outputFile.sha256}"` })).status).toBe(304);
    expect((await get({ 'if-range': '"other"', range: 'bytes=0-9' })).status).toBe(200);
    const beyond = await get({ range: `bytes=${whole.length}-` });
    expect([beyond.status, beyond.headers['content-range']]).toEqual([416, `bytes */${whole.length}`]);
  });

  it('comes by its signed address without a key', async () => {
    expect((await service().call('GET', job.outputFile.url, { key: null })).bytes).toEqual(whole);
  });

  it('comes whole although the connection to the bucket breaks', async () => {
    let cuts = 2;
    s3.fault = ({ method, key }) =>
      method === 'GET' && key.includes('/files/') && cuts-- > 0
        ? { kind: 'cut', afterBytes: 5000 }
        : undefined;
    expect((await get()).bytes).toEqual(whole);
    expect(cuts).toBeLessThan(1);
    s3.fault = () => undefined;
  });

  it('is erased with its job: 410, and nothing of it in the bucket', async () => {
    const { jobId } = await madeBy(service, 'erased.mp4');
    await service().call('DELETE', `/v1/jobs/${jobId}`);
    const answer = await service().call('GET', `/v1/download/${jobId}`);
    expect([answer.status, answer.body.error.code]).toEqual([410, 'FILE_EXPIRED']);
    expect(keysBelow('through').filter((key) => key.includes(jobId))).toEqual([]);
  });
});

describe('while the bucket', () => {
  const faults: [string, NonNullable<ReturnType<typeof s3.fault>>][] = [
    ['hangs', { kind: 'hang' }],
    ['has an error of its own', { kind: 'answer', status: 500, code: 'InternalError' }],
    ['denies access', { kind: 'answer', status: 403, code: 'AccessDenied' }],
  ];
  it.each(rowsOfRun(faults, 1))(
    '%s, requests that need it are answered 503, and the others as ever',
    async (_what, fault) => {
      const { jobId } = await madeBy(impatient, 'ready.mp4');
      s3.fault = () => fault;
      const ask = () =>
        Promise.all([
          impatient().call('GET', `/v1/download/${jobId}`),
          impatient().call('POST', '/v1/uploads', { body: 'OggS', headers: { 'content-type': 'audio/ogg' } }),
        ]);
      const answers = await ask();
      const ready = await until('it is known to be away', async () => {
        const answer = await impatient().call('GET', '/health/ready', { key: null });
        return answer.body.checks.storage === 'down' && answer;
      });
      const before = s3.requests.length;
      const invocationOf = ({ headers }: S3Request) => headers['amz-sdk-invocation-id'];
      const earlier = new Set(s3.requests.map(invocationOf));
      answers.push(...(await ask()));
      // What the first ones asked for is tried again, and what they left is removed, when they have been answered.
      const asked = s3.requests
        .slice(before)
        .filter(({ key, method }) => key.startsWith('impatient/') && method !== 'DELETE')
        .filter((request) => !earlier.has(invocationOf(request)));
      const url = await impatient().outside.file('waits.mp4', clip('tone.mp4'));
      const waiting = await impatient().submit({ source: { type: 'url', url }, output: { format: 'mp3' } });
      s3.fault = () => undefined;
      const told = answers.map(({ status, body }) => [status, body.error?.code]);
      expect(told).toEqual(Array(4).fill([503, 'SERVICE_UNAVAILABLE']));
      expect(asked).toEqual([]);
      expect([ready.status, ready.body.status]).toEqual([200, 'ok']);
      expect((await impatient().ended(waiting)).status).toBe('completed');
    },
  );
});

describe.runIf(currentRun === 'core')('a result that has another size than its record says', () => {
  it('is answered with an error, not as whole', async () => {
    const { jobId } = await madeBy(service, 'damaged.mp4');
    const key = keysBelow('through').find((one) => one.includes(jobId)) ?? '';
    await s3.put(key, 'half');
    for (const range of ['bytes=0-', 'bytes=0-1']) {
      const answer = await service().call('GET', `/v1/download/${jobId}`, { headers: { range } });
      expect([answer.status, answer.body.error?.code]).toEqual([500, 'INTERNAL_ERROR']);
    }
  });
});

describe.runIf(currentRun === 'core')('with S3_PUBLIC_ENDPOINT', () => {
  let job: Json;
  let path = '';
  const get = (headers: Record<string, string> = {}): Promise<Answer> =>
    leading().call('GET', path, { headers });

  beforeAll(async () => {
    const url = await leading().outside.file('tone.mp4', clip('tone.mp4'));
    job = await leading().run({
      source: { type: 'url', url },
      output: { format: 'mp3' },
      options: { filename: 'grüße' },
    });
    path = `/v1/download/${job.jobId}`;
  });

  it('a download leads to the bucket, which answers with the same name and type, and in ranges', async () => {
    const answer = await get();
    expect([answer.status, answer.bytes.length, answer.headers['cache-control']]).toEqual([
      302,
      0,
      'no-store',
    ]);
    const { location = '' } = answer.headers;
    expect(location.startsWith(`${s3.endpoint}/${s3.bucket}/leading/files/`)).toBe(true);
    const file = await fetch(location);
    const bytes = Buffer.from(await file.arrayBuffer());
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(job.outputFile.sha256);
    expect(file.headers.get('content-type')).toBe('audio/mpeg');
    expect(file.headers.get('content-disposition')).toContain("filename*=UTF-8''gr%C3%BC%C3%9Fe.mp3");
    const part = await fetch(location, { headers: { range: 'bytes=1-3' } });
    expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, bytes.subarray(1, 4)]);
  });

  it('so does the signed address', async () => {
    expect((await leading().call('GET', job.outputFile.url, { key: null })).status).toBe(302);
  });

  it('what only the API can answer it answers', async () => {
    const head = await leading().call('HEAD', path);
    expect([head.status, head.headers.etag]).toEqual([200, `"${job.outputFile.sha256}"`]);
    expect((await get({ 'if-none-match': head.headers.etag ?? '' })).status).toBe(304);
    expect((await get({ range: 'bytes=9999999-' })).status).toBe(416);
    const resumed = await get({ range: 'bytes=5-', 'if-range': head.headers.etag ?? '' });
    expect([resumed.status, resumed.bytes.length]).toEqual([206, job.outputFile.size - 5]);
  });

  it('nobody gets an address without a key, or of what is gone', async () => {
    expect((await leading().call('GET', path, { key: null })).status).toBe(401);
    await leading().call('DELETE', `/v1/jobs/${job.jobId}`);
    expect((await get()).status).toBe(410);
  });
});
