/** The worker is killed in the middle of a put, again and again: one whole object in the end, told of once. */

import { type BucketServer, serveBucket } from 'soundpost-testing/bucket';
import { Client, receiveWebhooks, type WebhookReceiver } from 'soundpost-testing/client';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { type RunningProcess, ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useVideos } from './videos.ts';

const KILLS = 20;
const MIB = 1024 * 1024;

const videos = useVideos({ long: true });
let redis: TestRedis;
let home: ServiceHome;
let web: VideoServer;
let hooks: WebhookReceiver;
let store: BucketServer;
let client: Client;
/** The one there is: it may take the put up before it says that it has started. */
let worker: Promise<RunningProcess>;
let startWorker: () => Promise<RunningProcess>;

beforeAll(async () => {
  redis = await startTestRedis();
  web = await serveVideos(videos.folder);
  hooks = await receiveWebhooks();
  store = await serveBucket();
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that all processes share, of 32 bytes or more',
    OUTBOUND_ALLOW: [web.allow, hooks.allow, store.allow].join(','),
    JOB_LOCK_SECONDS: '5',
    WORKER_CONCURRENCY: '1',
  });
  const api = await home.start('api').says(/^API\s+(http\S+)/m);
  startWorker = async () => {
    const started = home.start('worker', { PUBLIC_URL: api });
    await started.says(/^Worker/m);
    return started;
  };
  worker = startWorker();
  await worker;
  client = new Client(api, home.key);
});
afterAll(async () => {
  await home.remove();
  await store.close();
  await hooks.close();
  await web.close();
  await redis.close();
});

it(
  `${KILLS} times`,
  async () => {
    const { bucket } = store;
    let kills = 0;
    let isDead: Promise<unknown> | undefined;
    bucket.onBytes = async (sizeBytes) => {
      if (kills === KILLS || sizeBytes < 2 * MIB * ((kills % 5) + 1) || isDead !== undefined) return;
      kills += 1;
      isDead = worker.then((victim) => {
        victim.signal('SIGKILL');
        return victim.exited;
      });
      await isDead;
    };
    const jobId = await client.submit({
      source: { type: 'url', url: web.url('long.wav') },
      // Far more than the buffers of a connection hold.
      output: { format: 'wav', channels: 2, sampleRate: 48_000, end: 240 },
      options: { webhook: hooks.url },
      destination: { url: `${store.url}/long.wav?signature=abc` },
    });
    for (let nth = 1; nth <= KILLS; nth += 1) {
      await until(`put ${nth} is cut off`, () => bucket.puts.length === nth, 60_000);
      isDead = undefined;
      worker = startWorker();
      await worker;
    }
    const job = await until(
      'the file is put',
      async () => {
        const { body } = await client.call('GET', `/v1/jobs/${jobId}`);
        return body.data.destination.status !== 'pending' && body.data;
      },
      60_000,
    );
    expect(job).toMatchObject({ status: 'completed', destination: { status: 'completed', error: null } });
    expect(bucket.puts.map(({ isWhole }) => isWhole)).toEqual([
      ...Array.from({ length: KILLS }, () => false),
      true,
    ]);
    expect(bucket.objects.get('/long.wav')).toMatchObject({
      sizeBytes: job.outputFile.size,
      sha256: job.outputFile.sha256,
    });
    await hooks.notifications(jobId, 'destination.updated');
    // One that comes after it through the same queues: whatever was to be told twice would have come by then.
    const later = await client.submit({
      source: { type: 'url', url: web.url('talk.mp4') },
      output: { format: 'mp3' },
      options: { webhook: hooks.url },
      destination: { url: `${store.url}/later.mp3` },
    });
    await hooks.notifications(later, 'destination.updated');
    const told = hooks.received.filter(({ json }) => json.jobId === jobId);
    expect(told.map(({ json }) => json.event).toSorted()).toEqual(['destination.updated', 'job.completed']);
  },
  (KILLS + 2) * 60_000,
);
