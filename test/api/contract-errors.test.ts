import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ErrorCode, errorCatalogue } from 'soundpost-contract/errors';
import { until } from 'soundpost-testing/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { sendJson, startTranscriber } from '../followups/transcripts/transcriber-stub.ts';
import { type Answer, type Ask, type Json, TestService, useClips, useService } from './api-fixture.ts';

const SILENT = 'https://silent.example/a';

const clip = useClips('tone.mp4', 'silent.mp4');
const service = useService({
  environment: { WEBHOOK_SCHEDULE_SECONDS: '0,0.1' },
  names: { 'silent.example': [] },
});
/** Without a worker, and with the smallest limits; of a Redis that hangs it is to be told soon. */
const strict = useService({
  parts: [],
  environment: { QUEUE_LIMIT: '1', RATE_READ_PER_MINUTE: '2', REDIS_DEADLINE_SECONDS: '2' },
});

let tone = '';
const from = (url: string): object => ({ type: 'url', url });
const job = (url = tone): Json => ({ source: from(url), output: { format: 'mp3' } });
const extract = (json: unknown, ask: Ask = {}): Promise<Answer> =>
  service().call('POST', '/v1/extract', { json, ...ask });
const get = (path: string, ask: Ask = {}): Promise<Answer> => service().call('GET', path, ask);
/** What the status of a job says that ended this way. */
const statusOf = async (request: object): Promise<Answer> =>
  get(`/v1/status/${(await service().run(request)).jobId}`);

beforeAll(async () => {
  tone = await service().outside.file('tone.mp4', clip('tone.mp4'));
});

interface Case {
  readonly how: string;
  /** Where it is not the catalogue's: a failed job is no failed request. */
  readonly httpStatus?: number;
  readonly retryAfter?: true;
  readonly produce: () => Promise<Answer>;
}

/** How each code of the catalogue comes about. The compiler and the first test say which one has no case. */
const cases: Record<ErrorCode, Case> = {
  UNAUTHORIZED: { how: 'no key', produce: () => get('/v1/jobs', { key: null }) },
  FORBIDDEN: {
    how: 'a key without the scope',
    produce: async () => get('/v1/jobs', { key: await service().newKey({ scopes: ['extract'] }) }),
  },
  INVALID_REQUEST: { how: 'an unknown field', produce: () => extract({ ...job(), extra: 1 }) },
  INVALID_SOURCE: { how: 'a private address', produce: () => extract(job('http://10.0.0.1/a')) },
  INVALID_OUTPUT: {
    how: 'an unknown format',
    produce: () => extract({ ...job(), output: { format: 'mp4' } }),
  },
  INVALID_WEBHOOK: {
    how: 'a test that the receiver answers with 500',
    produce: () => {
      const { url } = service().outside.hook('broken', () => ({ status: 500 }));
      return service().call('POST', '/v1/webhooks/test', { json: { url } });
    },
  },
  INVALID_JOB_ID: { how: 'an id of another form', produce: () => get('/v1/status/job_1') },
  TOO_MANY_JOBS: {
    how: 'eleven jobs',
    produce: () =>
      service().call('POST', '/v1/batch', { json: { jobs: Array.from({ length: 11 }, () => job()) } }),
  },
  INVALID_VIDEO: {
    how: 'a form with a text as its file',
    produce: () => {
      const form = new FormData();
      form.append('request', JSON.stringify({ output: { format: 'mp3' } }));
      form.append('file', new Blob(['no video at all'.repeat(999)]), 'a.mp4');
      return service().call('POST', '/v1/extract', { body: form });
    },
  },
  JOB_NOT_FOUND: { how: 'an unknown job', produce: () => get('/v1/status/job_0123456789abcdef') },
  BATCH_NOT_FOUND: { how: 'an unknown batch', produce: () => get('/v1/batch/batch_0123456789abcdef') },
  UPLOAD_NOT_FOUND: { how: 'an unknown upload', produce: () => get('/v1/uploads/upl_0123456789abcdef') },
  NOT_FOUND: { how: 'an unknown path', produce: () => get('/v1/nothing') },
  METHOD_NOT_ALLOWED: { how: 'another method', produce: () => service().call('PUT', '/v1/extract') },
  JOB_NOT_COMPLETED: {
    how: 'a download too early',
    retryAfter: true,
    async produce() {
      const slow = await service().outside.stalling('slow.mp4', clip('tone.mp4'));
      const jobId = await service().submit(job(slow.url));
      const answer = await get(`/v1/download/${jobId}`);
      slow.letGo();
      await service().ended(jobId);
      return answer;
    },
  },
  EXTRACTION_FAILED: {
    how: 'a video without sound',
    httpStatus: 200,
    produce: async () => statusOf(job(await service().outside.file('silent.mp4', clip('silent.mp4')))),
  },
  DOWNLOAD_FAILED: {
    how: 'a source that answers 404',
    httpStatus: 200,
    produce: () => statusOf(job(`http://127.0.0.1:${service().outside.port}/missing.mp4`)),
  },
  JOB_CANCELLED: {
    how: 'a cancelled job',
    httpStatus: 200,
    async produce() {
      const slow = await service().outside.stalling('cancelled.mp4', clip('tone.mp4'));
      const jobId = await service().submit(job(slow.url));
      await service().call('DELETE', `/v1/jobs/${jobId}`);
      return get(`/v1/status/${jobId}`);
    },
  },
  FILE_EXPIRED: {
    how: 'a download after the files were erased',
    async produce() {
      const { jobId } = await service().run(job());
      await service().call('DELETE', `/v1/jobs/${jobId}`);
      return get(`/v1/download/${jobId}`);
    },
  },
  PAYLOAD_TOO_LARGE: {
    how: 'a request of more than 64 KiB',
    produce: () => extract({ ...job(), extra: 'a'.repeat(64 * 1024) }),
  },
  UNSUPPORTED_MEDIA_TYPE: {
    how: 'a body of another type',
    produce: () =>
      service().call('POST', '/v1/batch', { body: 'x', headers: { 'content-type': 'text/plain' } }),
  },
  IDEMPOTENCY_MISMATCH: {
    how: 'another body under the same key',
    async produce() {
      const headers = { 'idempotency-key': 'mismatch' };
      const { body } = await extract(job(), { headers });
      const answer = await extract({ ...job(), output: { format: 'flac' } }, { headers });
      // INTERNAL_ERROR takes the storage away from whatever still runs.
      await service().ended(body.data.jobId);
      return answer;
    },
  },
  IDEMPOTENCY_IN_PROGRESS: {
    how: 'the same request while the first one waits for a name',
    retryAfter: true,
    async produce() {
      const headers = { 'idempotency-key': 'in-progress' };
      const [first, second] = await Promise.all([
        extract(job(SILENT), { headers }),
        extract(job(SILENT), { headers }),
      ]);
      return first.status === 409 ? first : second;
    },
  },
  RATE_LIMITED: {
    how: 'more requests than the key may make in a minute',
    retryAfter: true,
    async produce() {
      await strict().call('GET', '/v1/jobs');
      await strict().call('GET', '/v1/jobs');
      return strict().call('GET', '/v1/jobs');
    },
  },
  QUEUE_FULL: {
    how: 'one job more than may wait',
    retryAfter: true,
    async produce() {
      const url = `http://127.0.0.1:${strict().outside.port}/a`;
      await strict().submit(job(url));
      return strict().call('POST', '/v1/extract', { json: job(url) });
    },
  },
  SERVICE_UNAVAILABLE: {
    how: 'a Redis that hangs',
    retryAfter: true,
    async produce() {
      process.kill(strict().redis.pid, 'SIGSTOP');
      const answer = await strict().call('GET', '/v1/jobs');
      process.kill(strict().redis.pid, 'SIGCONT');
      return answer;
    },
  },
  INTERNAL_ERROR: {
    how: 'a storage that takes no file, three times',
    httpStatus: 200,
    async produce() {
      const broken = join(service().dataDir, 'files');
      await rm(broken, { recursive: true, force: true });
      await writeFile(broken, 'no folder');
      const answer = await statusOf(job());
      await rm(broken);
      return answer;
    },
  },
  TRANSCRIPT_FAILED: {
    how: 'a transcriber that refuses the audio',
    httpStatus: 200,
    async produce() {
      const transcriber = await startTranscriber();
      transcriber.answer = (response) => sendJson(response, 400, {});
      const hearing = await TestService.start({ environment: { TRANSCRIBER_URL: transcriber.url } });
      try {
        const url = await hearing.outside.file('heard.mp4', clip('tone.mp4'));
        const outputs = [
          { name: 'full', format: 'mp3' },
          { name: 'words', format: 'transcript' },
        ];
        const { jobId } = await hearing.run({ source: { type: 'url', url }, outputs });
        return await until('the transcript has failed', async () => {
          const answer = await hearing.call('GET', `/v1/download/${jobId}?name=words`);
          return answer.status === 200 && answer;
        });
      } finally {
        await hearing.close();
        await transcriber.close();
      }
    },
  },
  WEBHOOK_FAILED: {
    how: 'a receiver that never answers 2xx',
    httpStatus: 200,
    async produce() {
      const { url } = service().outside.hook('never', () => ({ status: 500 }));
      const { jobId } = await service().run({ ...job(), options: { webhook: url } });
      const { webhook } = await until('the webhook was given up', async () => {
        const now = await service().job(jobId);
        return now.webhook.status === 'failed' && now;
      });
      expect(webhook).toEqual({ status: 'failed', attempts: 2, lastError: expect.any(String) });
      const [code, message] = webhook.lastError.split(': ');
      const answer = await get(`/v1/status/${jobId}`);
      expect(answer.body).toMatchObject({ success: true, data: { status: 'completed', webhook } });
      // It is the job's record that carries this one: the job itself has not failed.
      return { ...answer, body: { success: false, error: { code, message } } };
    },
  },
  DESTINATION_FAILED: {
    how: 'a bucket that refuses the file',
    httpStatus: 200,
    async produce() {
      const url = service().outside.on('/refusing', (request, response) => {
        request.resume();
        response.writeHead(403).end();
      });
      const { jobId } = await service().run({ ...job(), destination: { url } });
      const { destination } = await until('the file is not put', async () => {
        const now = await service().job(jobId);
        return now.destination.status === 'failed' && now;
      });
      const answer = await get(`/v1/status/${jobId}`);
      expect(answer.body).toMatchObject({ success: true, data: { status: 'completed', destination } });
      // As above.
      return { ...answer, body: { success: false, error: destination.error } };
    },
  },
};

describe('Errors', () => {
  it('every code of the catalogue has a case here', () => {
    expect(Object.keys(cases).toSorted()).toEqual(Object.keys(errorCatalogue).toSorted());
  });

  const table = (Object.entries(cases) as [ErrorCode, Case][]).map(([code, made]) => ({ code, ...made }));

  it.each(table)('$code: $how', async ({ code, httpStatus, retryAfter, produce }) => {
    const { status, headers, body } = await produce();
    expect({ status, body }).toEqual({
      status: httpStatus ?? errorCatalogue[code].httpStatus,
      body: {
        success: false,
        error: expect.objectContaining({ code, message: expect.stringMatching(/\S/) }),
      },
    });
    expect(
      Object.keys(body.error).filter((field) => !['code', 'message', 'details'].includes(field)),
    ).toEqual([]);
    expect(['string', 'undefined']).toContain(typeof body.error.details);
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['content-type']).toMatch(/^application\/json/);
    if (retryAfter) {
      expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    }
    expect(JSON.stringify(body)).not.toMatch(/127\.0\.0\.1|10\.0\.0\.1|\/tmp|node_modules|\n/);
  });
});

// One that hangs: deadlines.core-all.test.ts.
it('A6. a Redis that has ended makes every answer 503', async () => {
  const own = await TestService.start({ parts: [] });
  expect((await own.call('GET', '/v1/jobs')).status).toBe(200);
  await own.redis.close();
  const requests: [string, string, Ask?][] = [
    ['GET', '/v1/jobs'],
    ['GET', '/v1/status/job_0123456789abcdef'],
    ['POST', '/v1/extract', { json: job('https://media.example/') }],
    ['POST', '/v1/batch', { json: { jobs: [job('https://media.example/')] } }],
    ['GET', '/v1/download/job_0123456789abcdef'],
    ['DELETE', '/v1/jobs/job_0123456789abcdef'],
  ];
  for (const [method, path, ask] of requests) {
    const { status, body } = await own.call(method, path, ask);
    expect([path, status, body.error.code]).toEqual([path, 503, 'SERVICE_UNAVAILABLE']);
  }
  const ready = await own.call('GET', '/health/ready', { key: null });
  expect([ready.status, ready.body.checks.redis, ready.body.marks]).toEqual([503, 'down', 'same']);
  expect((await own.call('GET', '/health/live', { key: null })).status).toBe(200);
  await own.close();
});
