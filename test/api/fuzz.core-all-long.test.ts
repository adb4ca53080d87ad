import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { ErrorCode } from 'soundpost-contract/errors';
import { byRun } from 'soundpost-testing/by-run';
import { request } from 'undici';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Json, useClips, useService } from './api-fixture.ts';
import { type FuzzedRequest, fuzzedRequests, type Known } from './request-fuzzer.ts';

const run = byRun({
  core: { count: 60, seed: 20_261_120 },
  all: { count: 3000, seed: 20_261_121 },
  long: { count: 20_000, seed: Date.now() % 2 ** 31 },
});
const { count } = run;
const seed = Number(process.env.FUZZ_SEED ?? run.seed);

/** An answer that takes longer hangs. */
const LONGEST_MS = 60_000;

const clip = useClips('tone.mp4');
const service = useService({
  environment: { TRUST_PROXY: '1', WEBHOOK_SCHEDULE_SECONDS: '0', UNFINISHED_PER_KEY: '1000000' },
  names: {},
});

let document: Json;
let known: Known;

beforeAll(async () => {
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  const hook = service().outside.hook('hook');
  const job = { source: { type: 'url', url }, output: { format: 'mp3' }, options: { webhook: hook.url } };
  const done = await service().run(job);
  await hook.got(1);
  const failed = await service().run({ ...job, source: { type: 'url', url: `${url}.missing` } });
  const batch = await service().call('POST', '/v1/batch', { json: { jobs: [job] } });
  const { body: deliveries } = await service().call('GET', `/v1/jobs/${done.jobId}/deliveries`);
  const more = await Promise.all([1, 2, 3].map(() => service().run(job)));
  const video = await readFile(clip('tone.mp4'));
  // Enough of them, since some requests remove what others need.
  const uploads = await Promise.all(
    Array.from({ length: 8 }, () =>
      service().call('POST', '/v1/uploads', { body: video, headers: { 'content-type': 'video/mp4' } }),
    ),
  );
  const resumable = await Promise.all(
    Array.from({ length: 8 }, () =>
      service().call('POST', '/v1/uploads', {
        headers: { 'tus-resumable': '1.0.0', 'upload-length': '1000' },
      }),
    ),
  );
  const complete: string[] = uploads.map(({ body }) => body.data.file);
  const query = new URL(done.outputFile.url).searchParams;
  document = (await service().call('GET', '/openapi.json')).body;
  known = {
    jobId: [done, failed, ...more].map(({ jobId }) => jobId),
    uploadId: [...complete, ...resumable.map(({ headers }) => headers.location?.split('/').at(-1) ?? '')],
    '^upl_[0-9a-f]{16}$': complete,
    'Tus-Resumable': ['1.0.0'],
    batchId: [batch.body.data.batchId],
    deliveryId: [deliveries.data.deliveries[0].deliveryId],
    signature: [query.get('signature') ?? ''],
    expires: [query.get('expires') ?? ''],
    uri: [url],
  };
});

function bodyOf({ body }: FuzzedRequest): { bytes: Uint8Array | string | null; type?: string } {
  switch (body.kind) {
    case 'none':
      return { bytes: null };
    case 'text':
      return { bytes: body.text };
    case 'bytes':
      return { bytes: body.bytes };
    case 'form': {
      const parts = body.parts.map(
        ({ name, value, filename }) =>
          `--fuzz\r\ncontent-disposition: form-data; name="${quoted(name)}"${
            filename === null ? '' : `; filename="${quoted(filename)}"`
          }\r\n\r\n${value}\r\n`,
      );
      return { bytes: `${parts.join('')}--fuzz--\r\n`, type: 'multipart/form-data; boundary=fuzz' };
    }
  }
}

const quoted = (text: string): string => text.replaceAll(/["\r\n]/g, '');

async function send(made: FuzzedRequest): Promise<{ status: number; type: string; text: string }> {
  const { bytes, type } = bodyOf(made);
  const answer = await request(`${service().url}${made.path}`, {
    reset: true,
    method: made.method as 'GET',
    headers: {
      'x-api-key': service().key,
      'x-forwarded-for': `2001:db8::${Date.now().toString(16).slice(-4)}`,
      ...(type === undefined ? {} : { 'content-type': type }),
      ...made.headers,
    },
    body: bytes as string | null,
    headersTimeout: LONGEST_MS,
    bodyTimeout: LONGEST_MS,
  });
  const contentType = String(answer.headers['content-type'] ?? '');
  if (contentType.startsWith('text/event-stream')) {
    // It stays open for as long as its job runs.
    answer.body.on('error', () => undefined).destroy();
    return { status: answer.statusCode, type: contentType, text: '' };
  }
  const text = await answer.body.text();
  return { status: answer.statusCode, type: contentType, text };
}

/** Bodies that are no envelope, each for a reason. */
function isFreeForm(path: string, method: string, status: number): boolean {
  const bare = path.replace(/\?.*$/s, '');
  return (
    method === 'HEAD' ||
    status === 204 ||
    status === 304 ||
    status === 416 ||
    /^\/(health\/|openapi\.json|docs)/.test(bare)
  );
}

function checkEnvelope({ path, method }: FuzzedRequest, status: number, type: string, text: string): void {
  if (isFreeForm(path, method, status) || (status < 300 && !type.startsWith('application/json'))) {
    return;
  }
  expect(type).toMatch(/^application\/json/);
  expect(text).not.toMatch(/node_modules|\/tmp\/|\bat .*\.ts:\d+/);
  const envelope: Json = JSON.parse(text);
  if (/\/v1\/(audio\/|models)/.test(path)) {
    // As OpenAI's clients read it.
    const param = envelope.error?.param === null ? null : expect.any(String);
    const error = {
      message: expect.stringMatching(/\S/),
      type: expect.any(String),
      param,
      code: expect.any(String),
    };
    if (status >= 300) expect(envelope).toEqual({ error });
    return;
  }
  if (envelope.success === true) {
    expect(envelope).toEqual({
      success: true,
      data: expect.any(Object),
      ...('message' in envelope ? { message: expect.any(String) } : {}),
    });
    expect(status).toBeLessThan(300);
    return;
  }
  const { details, ...error } = envelope.error;
  expect({ ...envelope, error }).toEqual({
    success: false,
    error: { code: expect.any(String), message: expect.stringMatching(/\S/) },
  });
  expect(ErrorCode.safeParse(error.code).success).toBe(true);
  expect(['string', 'undefined']).toContain(typeof details);
}

describe('Fuzzing', () => {
  it(`${count} requests made from the OpenAPI document (FUZZ_SEED=${seed}): no 500, no hang, each answer in the envelope`, {
    timeout: 120_000 + count * 100,
  }, async () => {
    const statuses = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(fuzzedRequests(document, known), async (made) => {
        const { status, type, text } = await send(made);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        expect(status, text).toBeLessThan(500);
        checkEnvelope(made, status, type, text);
      }),
      { seed, numRuns: count },
    );
    // The requests reached beyond the first check: some succeeded, and they failed in many ways.
    const share = (...wanted: number[]): number =>
      wanted.reduce((sum, status) => sum + (statuses.get(status) ?? 0), 0) / count;
    expect(share(200, 202, 204, 206)).toBeGreaterThan(0.1);
    expect(share(400)).toBeGreaterThan(0.1);
    expect(statuses.size).toBeGreaterThan(6);
    // And the service is none the worse for it.
    expect((await service().call('GET', '/health/ready', { key: null })).status).toBe(200);
    const url = `http://127.0.0.1:${service().outside.port}/tone.mp4`;
    const job = { source: { type: 'url', url }, output: { format: 'mp3' }, options: { priority: 'high' } };
    expect((await service().run(job)).status).toBe('completed');
  });
});
