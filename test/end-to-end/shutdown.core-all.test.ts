/** How `serve` ends: told to, with work under way, and killed. Nothing that was accepted is lost. */
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createLogger } from 'soundpost-kit/observe/logger';
import { connectRedis } from 'soundpost-kit/redis/connection';
import { currentRun } from 'soundpost-testing/by-run';
import { Client, receiveWebhooks, type WebhookReceiver } from 'soundpost-testing/client';
import { descendants, isAlive, programOf, signalIfThere } from 'soundpost-testing/processes';
import { startTestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { useVideos } from './videos.ts';

const videos = useVideos({ long: true });
let home: ServiceHome;
let web: VideoServer;
let hooks: WebhookReceiver;

beforeEach(async () => {
  web = await serveVideos(videos.folder);
  hooks = await receiveWebhooks();
  home = await ServiceHome.make({
    OUTBOUND_ALLOW: `${web.allow},${hooks.allow}`,
    WORKER_CONCURRENCY: '2',
    DOWNLOADS_AHEAD: '0',
  });
});
afterEach(async () => {
  await home.remove();
  await hooks.close();
  await web.close();
});

const job = (name: string, output: object = { format: 'mp3' }) => ({
  source: { type: 'url', url: web.url(name) },
  output,
  options: { webhook: hooks.url },
});

async function seconds<T>(work: Promise<T>): Promise<{ result: T; seconds: number }> {
  const startedMs = Date.now();
  const result = await work;
  return { result, seconds: (Date.now() - startedMs) / 1000 };
}

/** ffmpeg is at it for seconds, so that nobody misses it who asks a little late. */
const LONG_WORK = { format: 'flac', normalize: true, sampleRate: 48_000, channels: 2 };

const workspaces = () => readdirSync(join(home.folder, 'data', 'workspaces'));

it.runIf(currentRun === 'core')(
  'SIGTERM under load: running jobs finish, waiting ones stay, and a restart does those',
  async () => {
    web.hold();
    const first = await home.serve({ SHUTDOWN_SECONDS: '30', LOG_LEVEL: 'info' });
    const client = new Client(first.api, home.key);
    const ids: string[] = [];
    for (let count = 0; count < 6; count += 1) ids.push(await client.submit(job('talk.mp4')));
    await until('two downloads have begun', () => web.requests.length === 2);
    first.process.signal('SIGTERM');
    await first.process.says(/"msg":"stopping"/);
    web.letGo();
    const { result, seconds: took } = await seconds(first.process.exited);
    expect(result).toBe(0);
    expect(took).toBeLessThan(30);
    expect(workspaces()).toEqual([]);
    // Those that ran were finished; none was begun after the signal.
    expect(web.requests).toHaveLength(2);

    const second = await home.serve();
    const again = new Client(second.api, home.key);
    await Promise.all(ids.map((jobId) => again.completed(jobId)));
    expect(web.requests).toHaveLength(6);
    for (const jobId of ids) {
      const notifications = await hooks.notifications(jobId, 'job.completed');
      expect(new Set(notifications.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    }
  },
);

it.runIf(currentRun === 'all')(
  'SIGTERM with a job that takes too long: it is handed back within the bound and done after a restart',
  async () => {
    web.hold();
    const first = await home.serve({ SHUTDOWN_SECONDS: '1' });
    const client = new Client(first.api, home.key);
    const jobId = await client.submit(job('talk.mp4'));
    await until('the download has begun', () => web.requests.length === 1);
    first.process.signal('SIGTERM');
    const { result, seconds: took } = await seconds(first.process.exited);
    expect(result).toBe(0);
    expect(took).toBeLessThan(10);
    expect(workspaces()).toEqual([]);
    expect(hooks.received).toEqual([]);

    web.letGo();
    const second = await home.serve();
    await new Client(second.api, home.key).completed(jobId);
    expect(await hooks.notifications(jobId, 'job.completed')).toHaveLength(1);
  },
);

it.runIf(currentRun === 'all')(
  'SIGTERM while a receiver of webhooks does not answer: the end does not wait for it, and it is told later',
  async () => {
    const silent = await receiveWebhooks(() => 503);
    const first = await home.serve({
      SHUTDOWN_SECONDS: '1',
      OUTBOUND_ALLOW: `${web.allow},${silent.allow}`,
      WEBHOOK_SCHEDULE_SECONDS: '0,1,2,3,4,5,6,7,8,9,10',
    });
    const client = new Client(first.api, home.key);
    const jobId = await client.submit({ ...job('talk.mp4'), options: { webhook: silent.url } });
    await silent.notifications(jobId, 'job.completed');
    first.process.signal('SIGTERM');
    const { result, seconds: took } = await seconds(first.process.exited);
    expect(result).toBe(0);
    expect(took).toBeLessThan(10);
    const before = silent.received.length;
    await home.serve({
      OUTBOUND_ALLOW: `${web.allow},${silent.allow}`,
      WEBHOOK_SCHEDULE_SECONDS: '0,1,2,3,4,5,6,7,8,9,10',
    });
    await until('it is tried again', () => silent.received.length > before);
    expect(new Set(silent.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    await silent.close();
  },
);

it.runIf(currentRun === 'all')(
  'SIGTERM while a client is in the middle of an upload does not wait for the rest of it',
  async () => {
    const first = await home.serve({ SHUTDOWN_SECONDS: '1' });
    const { hostname, port } = new URL(first.api);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    const head = 'POST /v1/extract HTTP/1.1\r\nHost: sound.example\r\nContent-Length: 1000000\r\n';
    const body = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n';
    socket.write(
      `${head}X-API-Key: ${home.key}\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n${body}`,
    );
    socket.write(await readFile(videos.talk).then((bytes) => bytes.subarray(0, 20_000)));
    await until('the upload arrives', () => readdirSync(join(home.folder, 'data')).includes('.unfinished'));
    first.process.signal('SIGTERM');
    const { result, seconds: took } = await seconds(first.process.exited);
    expect(result).toBe(0);
    expect(took).toBeLessThan(15);
    socket.destroy();
  },
);

it.runIf(currentRun === 'all')(
  'SIGTERM ends streams of events, also one that is opened after it on a connection that is there',
  async () => {
    web.hold();
    const first = await home.serve({ SHUTDOWN_SECONDS: '20', LOG_LEVEL: 'info' });
    const client = new Client(first.api, home.key);
    const jobId = await client.submit(job('talk.mp4'));
    const { hostname, port } = new URL(first.api);
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    const request = (path: string) =>
      `GET ${path} HTTP/1.1\r\nHost: sound.example\r\nX-API-Key: ${home.key}\r\n\r\n`;
    // A request whose head is not complete: the connection is busy, so the stop does not close it. The answer to the one before it
    // tells that the server has taken the connection and read what came.
    socket.write(request('/health/live') + request(`/v1/jobs/${jobId}/events`).slice(0, -2));
    await until('the first is answered', () => text.includes('HTTP/1.1 200'));
    first.process.signal('SIGTERM');
    await first.process.says(/"msg":"stopping"/);
    const startedMs = Date.now();
    socket.write('\r\n');
    await until('the stream has ended', () => socket.readableEnded || socket.destroyed, 15_000);
    expect(text).toContain('event: job');
    web.letGo();
    expect(await first.process.exited).toBe(0);
    // It did not take the whole of the grace.
    expect(Date.now() - startedMs).toBeLessThan(15_000);
  },
);

it.runIf(currentRun === 'all')('SIGTERM while Redis hangs ends the process all the same', async () => {
  const redis = await startTestRedis();
  const worker = home.start('worker', {
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that all processes share, of 32 bytes or more',
    SHUTDOWN_SECONDS: '1',
  });
  await worker.says(/^Worker/m);
  const client = connectRedis({ url: redis.url, role: 'request', logger: createLogger('silent') });
  const [, pid] = /process_id:(\d+)/.exec(await client.info('server')) ?? [];
  client.disconnect();
  process.kill(Number(pid), 'SIGSTOP');
  try {
    worker.signal('SIGTERM');
    const { seconds: took } = await seconds(worker.exited);
    // The second of grace, and what closing may take beyond it.
    expect(took).toBeLessThan(30);
  } finally {
    process.kill(Number(pid), 'SIGCONT');
    await redis.close();
  }
});

it.runIf(currentRun === 'all')(
  'SIGKILL of script/server leaves no process, and the next start finishes what was accepted',
  async () => {
    const server = home.run(['script/server'], { JOB_LOCK_SECONDS: '3' });
    const api = await server.says(/^API\s+(http\S+)/m);
    const client = new Client(api, home.key);
    const jobId = await client.submit(job('long.wav', LONG_WORK));
    const children = await until('ffmpeg and redis-server run', () => {
      const pids = descendants(server.pid);
      const programs = pids.map(programOf);
      return programs.includes('ffmpeg') && programs.includes('redis-server') && pids;
    });
    server.signal('SIGKILL');
    await server.exited;
    await until('no child is left', () => !children.some(isAlive));

    const next = await home.serve({ JOB_LOCK_SECONDS: '3' });
    await new Client(next.api, home.key).completed(jobId);
    expect(await hooks.notifications(jobId, 'job.completed')).toHaveLength(1);
  },
);

it.runIf(currentRun === 'all')('SIGKILL of everything at once loses no accepted job', async () => {
  web.hold();
  const first = await home.serve({ JOB_LOCK_SECONDS: '3' });
  const client = new Client(first.api, home.key);
  const ids = [
    await client.submit(job('talk.mp4')),
    await client.submit(job('talk.mp4')),
    await client.submit(job('talk.mp4')),
  ];
  await until('two downloads have begun', () => web.requests.length === 2);
  for (const pid of home.notePids().reverse()) signalIfThere(pid, 'SIGKILL');
  await first.process.exited;
  web.letGo();
  const second = await home.serve({ JOB_LOCK_SECONDS: '3' });
  const again = new Client(second.api, home.key);
  await Promise.all(ids.map((jobId) => again.completed(jobId)));
});

it.runIf(currentRun === 'all')(
  'a second service over the same folder is refused with a sentence, and the first one goes on',
  async () => {
    const first = await home.serve();
    const second = home.start('serve');
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain('another Soundpost uses');
    expect(second.output()).toContain('choose another DATA_DIR');
    const { status } = await new Client(first.api, home.key).call('GET', '/health/ready');
    expect(status).toBe(200);
  },
);
