import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { type Json, useClips, useService } from './api-fixture.ts';

const CONCURRENCY = 2;

const clip = useClips('tone.mp4');
const service = useService({
  parts: [],
  environment: { WORKER_CONCURRENCY: String(CONCURRENCY), DOWNLOADS_AHEAD: '0' },
});

describe('A6. Fairness between keys', () => {
  it('200 queued jobs of one key delay the one job of another by no more than those that run', async () => {
    const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
    const job = { source: { type: 'url', url }, output: { format: 'aac' } };
    const [busy, other] = [await service().newKey(), await service().newKey()];
    for (let n = 0; n < 20; n += 1) {
      const { status } = await service().call('POST', '/v1/batch', {
        key: busy,
        json: { jobs: Array.from({ length: 10 }, () => job) },
      });
      expect(status).toBe(202);
    }
    await service().startWorker();
    await until('the first of them are done', async () => {
      const { body } = await service().call('GET', '/v1/usage', { key: busy });
      return body.data.unfinishedJobs.used <= 196;
    });
    const jobId = await service().submit(job, { key: other });
    const mine = await until('the other key’s job is done', async () => {
      const now = await service().job(jobId, { key: other });
      return now.status === 'completed' && now;
    });
    const theirs: Json[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const { body } = await service().call('GET', `/v1/jobs?limit=100${query}`, { key: busy });
      theirs.push(...body.data.jobs);
      cursor = body.data.nextCursor;
    }
    expect(theirs).toHaveLength(200);
    const overtaking = theirs.filter(
      ({ startedAt }) => startedAt !== null && startedAt > mine.createdAt && startedAt < mine.startedAt,
    );
    // Those that were just being handed to a worker.
    expect(overtaking.length).toBeLessThanOrEqual(CONCURRENCY);
    expect(theirs.filter(({ status }) => status === 'queued').length).toBeGreaterThan(100);
  });
});
