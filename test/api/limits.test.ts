import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { type Answer, type Json, useClips, useService } from './api-fixture.ts';

const job = (port: number): Json => ({
  source: { type: 'url', url: `http://127.0.0.1:${port}/a.mp4` },
  output: { format: 'mp3' },
});

describe('A6. Rates', () => {
  const service = useService({
    parts: [],
    environment: { RATE_SUBMIT_PER_MINUTE: '12', RATE_READ_PER_MINUTE: '5' },
  });
  const extract = (key: string): Promise<Answer> =>
    service().call('POST', '/v1/extract', { key, json: job(service().outside.port) });
  const batch = (key: string, count: number): Promise<Answer> =>
    service().call('POST', '/v1/batch', {
      key,
      json: { jobs: Array.from({ length: count }, () => job(service().outside.port)) },
    });
  const left = ({ headers }: Answer): [string | undefined, number] => {
    const [, policy, remaining, seconds] = /^"(\w+)";r=(\d+);t=(\d+)$/.exec(headers.ratelimit ?? '') ?? [];
    expect(Number(seconds)).toBeGreaterThan(0);
    expect(Number(seconds)).toBeLessThanOrEqual(60);
    return [policy, Number(remaining)];
  };

  it('every answer to a key says what is left, refusals and unknown paths included', async () => {
    const key = await service().newKey({ scopes: ['read', 'extract'] });
    const paths = ['/v1/jobs', '/v1/status/job_1', '/v1/webhooks/secret', '/v1/nothing', '/v1/extract'];
    const answers: Answer[] = [];
    for (const path of paths) answers.push(await service().call('GET', path, { key }));
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 403, 404, 405]);
    expect(answers.map(left)).toEqual([4, 3, 2, 1, 0].map((remaining) => ['read', remaining]));
    expect(new Set(answers.map(({ headers }) => headers['ratelimit-policy']))).toEqual(
      new Set(['"read";q=5;w=60']),
    );
    const refused = await service().call('GET', '/v1/jobs', { key });
    expect([refused.status, refused.body.error.code, ...left(refused)]).toEqual([
      429,
      'RATE_LIMITED',
      'read',
      0,
    ]);
    expect(Number(refused.headers['retry-after'])).toBe(
      Number(/t=(\d+)/.exec(refused.headers.ratelimit ?? '')?.[1]),
    );
    // Another key, and the other allowance, are not touched.
    expect((await service().call('GET', '/v1/jobs')).status).toBe(200);
    expect((await extract(key)).status).toBe(202);
  });

  it('submissions have their own; one that is refused for its content costs nothing', async () => {
    const key = await service().newKey();
    const first = await extract(key);
    expect([first.status, ...left(first)]).toEqual([202, 'submit', 11]);
    expect(first.headers['ratelimit-policy']).toBe('"submit";q=12;w=60');
    const faulty = await service().call('POST', '/v1/extract', { key, json: {} });
    expect([faulty.status, ...left(faulty)]).toEqual([400, 'submit', 11]);
    expect(left(await extract(key))).toEqual(['submit', 10]);
  });

  it('a batch counts as its jobs, all of them or none', async () => {
    const key = await service().newKey();
    const first = await batch(key, 8);
    expect([first.status, ...left(first)]).toEqual([202, 'submit', 4]);
    const tooMany = await batch(key, 5);
    expect([tooMany.status, tooMany.body.error.code]).toEqual([429, 'RATE_LIMITED']);
    expect(tooMany.headers['retry-after']).toMatch(/^[1-9]\d?$/);
    const { body } = await service().call('GET', '/v1/usage', { key });
    expect(body.data).toMatchObject({ submissions: { remaining: 4 }, unfinishedJobs: { used: 8 } });
    expect((await batch(key, 4)).status).toBe(202);
    expect((await extract(key)).status).toBe(429);
  });

  it('a retry counts as a submission', async () => {
    const key = await service().newKey();
    const { body } = await extract(key);
    await service().call('DELETE', `/v1/jobs/${body.data.jobId}`, { key });
    const retried = await service().call('POST', `/v1/jobs/${body.data.jobId}/retry`, { key });
    expect([retried.status, ...left(retried)]).toEqual([202, 'submit', 10]);
  });

  it('many at once get no more than there is', async () => {
    const key = await service().newKey();
    const answers = await Promise.all(Array.from({ length: 30 }, () => extract(key)));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(12);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(18);
  });
});

describe('A6. Unfinished jobs', () => {
  const clip = useClips('tone.mp4');
  const service = useService({
    environment: { UNFINISHED_PER_KEY: '3', WORKER_CONCURRENCY: '4', DOWNLOADS_AHEAD: '0' },
  });

  it('a key may have so many, a batch counts as its jobs, and each end makes room', async () => {
    const slow = await service().outside.stalling('slow.mp4', clip('tone.mp4'));
    const json = { ...job(0), source: { type: 'url', url: slow.url } };
    const submit = (): Promise<Answer> => service().call('POST', '/v1/extract', { json });
    const batch = (count: number): Promise<Answer> =>
      service().call('POST', '/v1/batch', { json: { jobs: Array.from({ length: count }, () => json) } });
    const first = await submit();
    const refused = await batch(3);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMITED']);
    expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect((await batch(2)).status).toBe(202);
    expect((await submit()).status).toBe(429);
    // Somebody else has room of his own.
    const other = await service().newKey();
    expect((await service().call('POST', '/v1/extract', { key: other, json })).status).toBe(202);
    await service().call('DELETE', `/v1/jobs/${first.body.data.jobId}`);
    const again = await until('there is room', async () => {
      const answer = await submit();
      return answer.status === 202 && answer;
    });
    slow.letGo();
    await service().ended(again.body.data.jobId);
    await until('there is room for three', async () => (await batch(3)).status === 202);
  });
});

describe('A6. The whole queue', () => {
  const service = useService({ parts: [], environment: { QUEUE_LIMIT: '4' } });

  it('takes so many waiting jobs, a batch wholly or not, and says when to come again', async () => {
    const batch = (count: number): Promise<Answer> =>
      service().call('POST', '/v1/batch', {
        json: { jobs: Array.from({ length: count }, () => job(service().outside.port)) },
      });
    const first = await batch(3);
    const full = await batch(2);
    expect([full.status, full.body.error.code]).toEqual([503, 'QUEUE_FULL']);
    expect(full.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect((await batch(1)).status).toBe(202);
    const stranger = await service().newKey();
    const json = job(service().outside.port);
    expect((await service().call('POST', '/v1/extract', { key: stranger, json })).status).toBe(503);
    await service().call('DELETE', `/v1/jobs/${first.body.data.jobs[0].jobId}`);
    expect((await service().call('POST', '/v1/extract', { key: stranger, json })).status).toBe(202);
  });
});
