// @module-tag faketime
/**
 * Workers whose clocks are a day ahead and an hour behind, beside a good one: they say so and do nothing, so that no result is erased early; the good one goes on
 * to work and to sweep.
 */
import { Redis } from 'ioredis';
import { Client } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { type RunningProcess, ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useVideos } from '../end-to-end/videos.ts';

const JOBS = 6;
const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';

const videos = useVideos();
let redis: TestRedis;
let looking: Redis;
let web: VideoServer;
let home: ServiceHome;
let client: Client;
let api = '';

beforeAll(async () => {
  redis = await startTestRedis();
  looking = new Redis(redis.socketPath);
  web = await serveVideos(videos.folder);
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that all processes share, of 32 bytes or more',
    OUTBOUND_ALLOW: web.allow,
    LOG_LEVEL: 'info',
  });
  api = await home.start('api').says(/^API\s+(http\S+)/m);
  client = new Client(api, home.key);
});
afterAll(async () => {
  await home.remove();
  await web.close();
  looking.disconnect();
  await redis.close();
});

interface Worker {
  readonly process: RunningProcess;
  readonly health: string;
}

async function startWorker(offset?: string): Promise<Worker> {
  const wrong = { LD_PRELOAD: LIBRARY, FAKETIME: offset ?? '', DONT_FAKE_MONOTONIC: '1' };
  const worker = home.start('worker', { PUBLIC_URL: api, ...(offset === undefined ? {} : wrong) });
  return { process: worker, health: await worker.says(/^Worker .*(http\S+)\/health\/ready/m) };
}

const submit = (): Promise<string> =>
  client.submit({ source: { type: 'url', url: web.url('talk.mp4') }, output: { format: 'mp3' } });

async function done(count: number): Promise<string[]> {
  const jobIds = await Promise.all(Array.from({ length: count }, submit));
  for (const jobId of jobIds) await client.completed(jobId);
  return jobIds;
}

/** How far the janitors came, ms since the epoch. */
async function cursors(): Promise<number[]> {
  const stored = await looking.hgetall('{soundpost}:sp:janitor');
  return Object.values(stored).map((cursor) => Number(cursor.replace('(', '')));
}

// Shown to fail: with packages/kit/src/redis/clock.ts always right, the worker ahead erases every result at its start.
it('workers at +25 h and −1 h erase nothing, take nothing, and say so', { timeout: 300_000 }, async () => {
  const good = await startWorker();
  const before = await done(JOBS);
  const wrong = await Promise.all([startWorker('+25h'), startWorker('-1h')]);
  for (const { process, health } of wrong) {
    await process.says(/(the clock of this machine differs from the Redis clock by more than 5 s)/);
    expect(await (await fetch(`${health}/health/ready`)).json()).toMatchObject({ clock: 'wrong' });
  }
  const ahead = await Promise.all(
    wrong.map(async ({ health }) => {
      const text = await (await fetch(`${health}/metrics`)).text();
      return Math.round(Number(/^soundpost_clock_ahead_seconds (\S+)/m.exec(text)?.[1]) / 3600);
    }),
  );
  expect(ahead).toEqual([25, -1]);

  const later = await done(JOBS);
  const [sweptAtMs = 0] = await cursors();
  await until('the good one has swept again', async () => ((await cursors())[0] ?? 0) > sweptAtMs, 120_000);
  expect(Math.max(...(await cursors()))).toBeLessThan(Date.now());
  for (const jobId of [...before, ...later]) {
    const answer = await fetch(`${api}/v1/download/${jobId}`, { headers: { 'x-api-key': home.key } });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
  }
  for (const { process } of wrong) expect(process.output()).not.toMatch(/"jobId"/);
  expect(good.process.output()).not.toMatch(/clock/);
});
