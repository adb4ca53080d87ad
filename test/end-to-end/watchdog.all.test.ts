/** A process that can do no work any more ends itself, so that whoever supervises it starts it again; one that is only busy does not. */

import { Client } from 'soundpost-testing/client';
import { descendants, isAlive, programOf } from 'soundpost-testing/processes';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { type RunningProcess, ServiceHome, soundpost } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { useVideos } from './videos.ts';

/** More than a process of a busy machine stands still by itself. */
const PATIENCE_SECONDS = 5;

const videos = useVideos({ long: true });
let redis: TestRedis;
let web: VideoServer;
let home: ServiceHome;
let client: Client;

beforeAll(async () => {
  web = await serveVideos(videos.folder);
  redis = await startTestRedis();
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that all processes share, of 32 bytes or more',
    OUTBOUND_ALLOW: web.allow,
    WORKER_CONCURRENCY: '1',
    DOWNLOADS_AHEAD: '0',
    SHUTDOWN_SECONDS: '1',
    WATCHDOG_SECONDS: String(PATIENCE_SECONDS),
  });
  // What is watched here is the worker: on a busy machine the API may stand still for as long.
  const api = home.start('api', { WATCHDOG_SECONDS: '60' });
  client = new Client(await api.says(/^API\s+(http\S+)/m), home.key);
});
/** The worker that was started last. */
let latest: RunningProcess | undefined;
afterEach(async () => {
  web.letGo();
  if (latest !== undefined && isAlive(latest.pid)) latest.signal('SIGTERM');
  await latest?.exited;
});
afterAll(async () => {
  await home.remove();
  await redis.close();
  await web.close();
});

async function startWorker(preload?: string): Promise<RunningProcess> {
  const load = preload === undefined ? [] : ['--import', `./test/end-to-end/${preload}`];
  const worker = home.run([...soundpost.toSpliced(1, 0, ...load), 'worker']);
  latest = worker;
  await worker.says(/^Worker/m);
  home.notePids();
  return worker;
}

const job = (name: string) => ({ source: { type: 'url', url: web.url(name) }, output: { format: 'flac' } });

/** What is to be seen is that nothing happens, which takes its time. */
async function pass(seconds: number): Promise<void> {
  const end = Date.now() + seconds * 1000;
  await until('that time has passed', () => Date.now() > end);
}

it('a worker that takes no jobs although they wait ends, and the next one does them', async () => {
  const worker = await startWorker('falls-deaf.ts');
  await client.completed(await client.submit(job('talk.mp4')));
  worker.signal('SIGUSR2');
  // If a call to Redis waited at that moment, it still brings a job; no other call is made.
  const last = client.completed(await client.submit(job('talk.mp4')));
  await Promise.race([last, worker.exited]);
  const unheard = await client.submit(job('talk.mp4'));
  expect(await worker.exited).toBe(1);
  expect(worker.output()).toContain('starts no jobs although jobs wait');
  await startWorker();
  await Promise.all([last, client.completed(unheard)]);
});

it('a worker that is busy, or has nothing to do, goes on', async () => {
  const worker = await startWorker();
  await pass(2 * PATIENCE_SECONDS);
  web.hold();
  const before = web.requests.length;
  const ids = [await client.submit(job('talk.mp4')), await client.submit(job('talk.mp4'))];
  await until('the first one is begun', () => web.requests.length > before);
  await pass(2 * PATIENCE_SECONDS);
  expect(isAlive(worker.pid)).toBe(true);
  web.letGo();
  await Promise.all(ids.map((id) => client.completed(id)));
});

it('a process whose event loop stands still is killed, with its ffmpeg', async () => {
  const worker = await startWorker('stands-still.ts');
  // ffmpeg is at it for seconds, so that nobody misses it who asks a little late.
  const output = { format: 'flac', normalize: true, sampleRate: 48_000, channels: 2 };
  const jobId = await client.submit({ ...job('long.wav'), output });
  const ffmpegs = await until('ffmpeg runs', () => {
    const found = descendants(worker.pid).filter((pid) => programOf(pid) === 'ffmpeg');
    return found.length > 0 && found;
  });
  worker.signal('SIGUSR2');
  await worker.exited;
  expect(worker.output()).toContain(`the event loop stood still for ${PATIENCE_SECONDS * 1000} ms`);
  await until('ffmpeg is gone', () => !ffmpegs.some(isAlive));
  await client.call('DELETE', `/v1/jobs/${jobId}`);
});

it('a process whose event loop stands still as soon as it is ready is killed', async () => {
  const worker = await startWorker('stands-still.ts');
  worker.signal('SIGUSR2');
  await worker.exited;
  expect(worker.output()).toContain(`the event loop stood still for ${PATIENCE_SECONDS * 1000} ms`);
});

it('a process that was stopped for longer than that goes on', async () => {
  const worker = await startWorker();
  worker.signal('SIGSTOP');
  await pass(2 * PATIENCE_SECONDS);
  worker.signal('SIGCONT');
  await client.completed(await client.submit(job('talk.mp4')));
  expect(isAlive(worker.pid)).toBe(true);
});
