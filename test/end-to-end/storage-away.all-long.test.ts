/**
 * A bucket that goes away while jobs wait and run: none fails, and none is lost. `--long` has it away for five minutes. And one that is slow: who
 * needs it waits, nobody else.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { byRun } from 'soundpost-testing/by-run';
import { Client } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { percentile, promised, report } from '../faults/runs.ts';
import { useVideos } from './videos.ts';

const AWAY_MS = byRun({ all: 10_000, long: 300_000 });
const JOBS = byRun({ all: 20, long: 500 });
const READS = byRun({ all: 5, long: 200 });

const videos = useVideos();
let redis: TestRedis;
let s3: S3Server;
let web: VideoServer;
let home: ServiceHome;
let client: Client;
let api = '';

beforeAll(async () => {
  redis = await startTestRedis();
  s3 = await S3Server.start();
  web = await serveVideos(videos.folder);
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that two processes share, of 32 bytes or more',
    OUTBOUND_ALLOW: web.allow,
    WORKER_CONCURRENCY: '2',
    UNFINISHED_PER_KEY: '1000',
    RATE_SUBMIT_PER_MINUTE: '1000',
    ...s3.environment(''),
  });
  api = await home.start('api').says(/^API\s+(http\S+)/m);
  await home.start('worker', { PUBLIC_URL: api }).says(/^Worker/m);
  client = new Client(api, home.key);
});
afterEach(() => {
  s3.fault = () => undefined;
});
afterAll(async () => {
  await home.remove();
  await web.close();
  await s3.close();
  await redis.close();
});

const submit = (): Promise<string> =>
  client.submit({ source: { type: 'url', url: web.url('talk.mp4') }, output: { format: 'mp3' } });
const results = (): string[] => s3.store.keys().filter((key) => key.startsWith('files/'));
const readiness = async () => {
  const { status, body } = await client.call('GET', '/health/ready');
  return [status, body.checks.storage];
};

it(
  'jobs wait for a bucket that is away, and all are completed',
  async () => {
    const jobs: string[] = [];
    // Not all at once: a burst of hundreds is refused in part.
    while (jobs.length < JOBS) jobs.push(...(await Promise.all(Array.from({ length: 20 }, submit))));
    await until('results are being stored', () => results().length > 0);
    s3.fault = () => ({ kind: 'hang' });
    s3.cutConnections();
    await delay(AWAY_MS / 2);
    s3.fault = () => ({ kind: 'cut' });
    s3.cutConnections();
    await until('it is known to be away', async () => (await readiness())[1] === 'down');
    // A job with a URL is accepted; what needs the bucket is refused at once.
    jobs.push(await submit());
    expect(await readiness()).toEqual([200, 'down']);
    const upload = await fetch(`${api}/v1/uploads`, {
      method: 'POST',
      headers: { 'x-api-key': home.key, 'content-type': 'audio/ogg' },
      body: 'OggS',
    });
    expect(upload.status).toBe(503);
    await delay(AWAY_MS / 2);
    s3.fault = () => undefined;
    for (const jobId of jobs) {
      const ended = await until(
        `${jobId} has ended`,
        async () => {
          const { body } = await client.call('GET', `/v1/jobs/${jobId}`);
          return ['completed', 'failed'].includes(body.data.status) && body.data;
        },
        60_000,
      );
      expect([ended.status, ended.error]).toEqual(['completed', undefined]);
    }
    expect(results()).toHaveLength(jobs.length);
    report('The bucket away while jobs wait', { awaySeconds: AWAY_MS / 1000, jobs: jobs.length, failed: 0 });
  },
  AWAY_MS + byRun({ all: 110_000, long: 900_000 }),
);

it('with a bucket that is slow, the other routes answer as ever', async () => {
  const jobId = await submit();
  await client.completed(jobId);
  s3.fault = () => ({ kind: 'late', until: delay(2000) });
  await until('it is known to be slow', async () => (await readiness())[1] === 'slow');
  const held = Promise.withResolvers<void>();
  s3.fault = ({ key }) => ({ kind: 'late', until: key === '' ? delay(2000) : held.promise });
  let isServed = false;
  const slow = client.bytes(`/v1/download/${jobId}`).finally(() => {
    isServed = true;
  });
  const tookMs: number[] = [];
  for (let nth = 0; nth < READS; nth += 1) {
    const startedMs = performance.now();
    expect((await client.call('GET', `/v1/status/${jobId}`)).status).toBe(200);
    tookMs.push(performance.now() - startedMs);
  }
  expect(isServed).toBe(false);
  expect(await readiness()).toEqual([200, 'slow']);
  held.resolve();
  expect((await slow).status).toBe(200);
  promised(percentile(tookMs, 0.99), 100);
});
