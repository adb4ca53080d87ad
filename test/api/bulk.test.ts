/** A4. POST /v1/jobs/bulk. Nobody works here: jobs stay queued until they are deleted, which fails them. */
import { closeRedis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { describe, expect, it } from 'vitest';
import { recordKey } from '../../src/jobs/bullmq-internals.ts';
import { type Answer, type Json, useService } from './api-fixture.ts';

const service = useService({
  parts: [],
  environment: { RATE_SUBMIT_PER_MINUTE: '12', RATE_READ_PER_MINUTE: '50', UNFINISHED_PER_KEY: '10' },
});

const UNKNOWN = 'job_0123456789abcdef';

async function tenant() {
  const key = await service().newKey();
  const submit = async (count: number): Promise<string[]> => {
    const url = `http://127.0.0.1:${service().outside.port}/a.mp4`;
    const jobs = Array.from({ length: count }, () => ({
      source: { type: 'url', url },
      output: { format: 'mp3' },
    }));
    const { body } = await service().call('POST', '/v1/batch', { key, json: { jobs } });
    return body.data.jobs.map(({ jobId }: Json) => jobId);
  };
  const bulk = (action: string, jobs: readonly string[], headers = {}): Promise<Answer> =>
    service().call('POST', '/v1/jobs/bulk', { key, json: { action, jobs }, headers });
  const listed = async (): Promise<Json[]> =>
    (await service().call('GET', '/v1/jobs?limit=100', { key })).body.data.jobs;
  return { key, submit, bulk, listed };
}

const results = ({ status, body }: Answer): Json[] => {
  expect([status, body.success]).toEqual([200, true]);
  return body.data.results;
};

describe('POST /v1/jobs/bulk', () => {
  it('retries each failed job as a new one, and says of the others why not, in the order asked', async () => {
    const { submit, bulk, listed } = await tenant();
    const stranger = await tenant();
    const [foreign = ''] = await stranger.submit(1);
    const [first = '', second = '', queued = ''] = await submit(3);
    expect(results(await bulk('delete', [first, second]))).toEqual([
      { jobId: first, ok: true },
      { jobId: second, ok: true },
    ]);
    const retried = results(await bulk('retry', [second, foreign, queued, UNKNOWN, first]));
    expect(retried.map(({ jobId, ok, error }) => [jobId, ok, error?.code])).toEqual([
      [second, true, undefined],
      [foreign, false, 'JOB_NOT_FOUND'],
      [queued, false, 'INVALID_REQUEST'],
      [UNKNOWN, false, 'JOB_NOT_FOUND'],
      [first, true, undefined],
    ]);
    // A stranger's job is answered like an unknown one.
    expect(JSON.stringify(retried[1]).replaceAll(foreign, UNKNOWN)).toBe(JSON.stringify(retried[3]));
    const jobs = new Map((await listed()).map((job) => [job.jobId, job]));
    expect(jobs.get(retried[0].newJobId)).toMatchObject({ status: 'queued', retryOf: second, batchId: null });
    expect(jobs.get(retried[4].newJobId)).toMatchObject({ status: 'queued', retryOf: first });
    expect(jobs.size).toBe(5);
    const [deleted] = results(await bulk('delete', [foreign]));
    expect(deleted).toMatchObject({ ok: false, error: { code: 'JOB_NOT_FOUND' } });
    expect((await stranger.listed())[0].status).toBe('queued');
  });

  it('retries count as submissions, all of them or none', async () => {
    const { submit, bulk, listed } = await tenant();
    const ids = await submit(7);
    await bulk('delete', ids);
    const refused = await bulk('retry', ids);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(await listed()).toHaveLength(7);
    const taken = await bulk('retry', ids.slice(0, 5));
    expect(results(taken).every(({ ok }) => ok)).toBe(true);
    expect(taken.headers.ratelimit).toMatch(/^"submit";r=0;/);
  });

  it('with too many unfinished jobs none is retried', async () => {
    const { submit, bulk, listed } = await tenant();
    const ids = await submit(2);
    await bulk('delete', ids);
    await submit(9);
    const refused = await bulk('retry', ids);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMITED']);
    expect(await listed()).toHaveLength(11);
  });

  it('deletions count as one request each, all of them or none', async () => {
    const { submit, bulk, listed } = await tenant();
    const ids = await submit(2);
    const many = Array.from({ length: 60 }, (_, nth) => `job_${String(nth).padStart(16, '0')}`);
    const refused = await bulk('delete', [...ids, ...many]);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMITED']);
    expect((await listed()).map(({ status }) => status)).toEqual(['queued', 'queued']);
    const done = await bulk('delete', [...ids, ...many.slice(0, 10)]);
    expect(results(done).map(({ ok }) => ok)).toEqual([true, true, ...Array(10).fill(false)]);
    expect(done.headers.ratelimit).toMatch(/^"read";r=3\d;/);
  });

  it('a repetition with its Idempotency-Key retries nothing again', async () => {
    const { submit, bulk, listed } = await tenant();
    const ids = await submit(2);
    await bulk('delete', ids);
    const headers = { 'idempotency-key': 'once' };
    const first = await bulk('retry', ids, headers);
    const again = await bulk('retry', ids, headers);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body).toEqual(first.body);
    expect(await listed()).toHaveLength(4);
    expect((await bulk('delete', ids, headers)).status).toBe(422);
  });

  it('one whose answer was lost makes no second job of any, whatever has become of the others', async () => {
    const { key, submit, bulk, listed } = await tenant();
    const ids = await submit(2);
    await bulk('delete', ids);
    const headers = { 'idempotency-key': 'lost' };
    const [, before] = results(await bulk('retry', ids, headers));
    const redis = connectPatiently(service().redis.url);
    try {
      // As if the process had died before it could keep its answer.
      const [kept = ''] = await redis.keys(ownKey('idempotency', key.split('_')[1] ?? '', '*'));
      expect(await redis.hdel(kept, 'answer', 'until')).toBe(2);
      await redis.del(recordKey('extract', ids[0] ?? ''));
    } finally {
      await closeRedis(redis);
    }
    const [gone, after] = results(await bulk('retry', ids, headers));
    expect(gone.error.code).toBe('JOB_NOT_FOUND');
    expect(after).toEqual(before);
    expect(await listed()).toHaveLength(3);
  });

  it.each([
    ['no job', { action: 'retry', jobs: [] }],
    [
      '101 jobs',
      { action: 'retry', jobs: Array.from({ length: 101 }, (_, n) => `job_${String(n).padStart(16, '0')}`) },
    ],
    ['a job twice', { action: 'delete', jobs: [UNKNOWN, UNKNOWN] }],
    ['an id that is none', { action: 'delete', jobs: ['job_1'] }],
    ['another action', { action: 'pause', jobs: [UNKNOWN] }],
  ])('refuses %s', async (_what, json) => {
    const { status, body } = await service().call('POST', '/v1/jobs/bulk', { json });
    expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
  });
});
