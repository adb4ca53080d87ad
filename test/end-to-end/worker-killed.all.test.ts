/** A worker is killed in the middle of a job: another one does it, and everybody hears of it once. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Client, receiveWebhooks, type WebhookReceiver } from '../client.ts';
import { descendants, isAlive, programOf } from '../processes.ts';
import { startTestRedis, type TestRedis } from '../redis-server.ts';
import { type RunningProcess, ServiceHome } from '../service.ts';
import { until } from '../until.ts';
import { serveVideos, type VideoServer } from '../video-server.ts';
import { ada, messagesTo } from './inbox.ts';
import { useVideos } from './videos.ts';

const GATEWAY_KEY = 'the-gateways-own-key';

const videos = useVideos({ long: true });
let redis: TestRedis;
let home: ServiceHome;
let web: VideoServer;
let hooks: WebhookReceiver;
let client: Client;
let gateway = '';
let workers: RunningProcess[];

beforeAll(async () => {
  redis = await startTestRedis();
  web = await serveVideos(videos.folder);
  hooks = await receiveWebhooks();
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that all processes share, of 32 bytes or more',
    GATEWAY_API_KEY: GATEWAY_KEY,
    OUTBOUND_ALLOW: `${web.allow},${hooks.allow}`,
    // Short, and not so short that it runs out while a busy machine lets the heir wait.
    JOB_LOCK_SECONDS: '5',
    WORKER_CONCURRENCY: '1',
  });
  const api = await home.start('api').says(/^API\s+(http\S+)/m);
  const addresses = { PUBLIC_URL: api, GATEWAY_EVENTS_URL: `${api}/hooks/gateway` };
  gateway = await home.start('gateway', addresses).says(/^Gateway\s+(http\S+)/m);
  workers = ['first', 'second'].map(() => home.start('worker', { ...addresses, GATEWAY_URL: gateway }));
  await Promise.all(workers.map((worker) => worker.says(/^Worker/m)));
  client = new Client(api, home.key);
});
afterAll(async () => {
  await home.remove();
  await hooks.close();
  await web.close();
  await redis.close();
});

const ffmpegsOf = ({ pid }: RunningProcess) =>
  descendants(pid).filter((child) => programOf(child) === 'ffmpeg');

it('while ffmpeg runs: another worker completes the job, with one webhook and one voice message', async () => {
  const jobId = await client.submit({
    source: { type: 'url', url: web.url('long.wav') },
    // Enough for ffmpeg to be busy for seconds.
    output: { format: 'flac', normalize: true, sampleRate: 48_000, channels: 2 },
    options: { webhook: hooks.url, voiceMessage: { instance: 'main', number: ada.number } },
  });
  // Nothing is awaited between the look at its ffmpeg and the signal: a job has several, and none between them.
  const { victim, orphans, progress } = await until(
    'one of the workers is killed over its ffmpeg',
    async () => {
      const { body } = await client.call('GET', `/v1/status/${jobId}`);
      const busy = workers
        .map((victim) => ({ victim, orphans: ffmpegsOf(victim) }))
        .find(({ orphans }) => orphans.length > 0);
      if (busy === undefined || body.data.progress <= 35) return false;
      busy.victim.signal('SIGKILL');
      return { ...busy, progress: body.data.progress };
    },
  );
  await victim.exited;
  await until('its ffmpeg is gone', () => !orphans.some(isAlive));

  const seen: number[] = [progress];
  await until(
    'the other worker has completed the job',
    async () => {
      const { body } = await client.call('GET', `/v1/status/${jobId}`);
      seen.push(body.data.progress);
      return body.data.status === 'completed';
    },
    60_000,
  );
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(web.requests.filter((name) => name === 'long.wav')).toHaveLength(2);

  const notifications = await hooks.notifications(jobId, 'job.completed');
  const { body } = await client.call('GET', '/v1/webhooks/secret');
  for (const { text, headers } of notifications) {
    expect(new Webhook(body.data.secret).verify(text, { ...headers })).toMatchObject({
      jobId,
      status: 'completed',
    });
  }
  const sent = await until('the voice message is sent', async () => {
    const { body } = await client.call('GET', `/v1/status/${jobId}`);
    return body.data.voiceMessage.status === 'sent' && body.data.voiceMessage;
  });
  // A job that comes after it through the same queues: whatever was to be told twice would have come by then.
  const later = await client.submit({
    source: { type: 'url', url: web.url('talk.mp4') },
    output: { format: 'mp3' },
    options: { webhook: hooks.url, voiceMessage: { instance: 'main', number: ada.number } },
  });
  await hooks.notifications(later, 'voice.updated');
  expect(
    hooks.received.filter(({ json }) => json.jobId === jobId && json.event === 'job.completed'),
  ).toHaveLength(1);
  const arrived = await messagesTo(gateway, ada.jid, { apikey: GATEWAY_KEY });
  expect(arrived).toHaveLength(2);
  expect(arrived[0].key.id).toBe(sent.key.id);

  // One file of one attempt.
  expect(
    readdirSync(join(home.folder, 'data', 'files', jobId)).filter((name) => name.endsWith('.flac')),
  ).toHaveLength(1);
  const { bytes } = await client.bytes(`/v1/download/${jobId}`);
  expect(bytes.length).toBeGreaterThan(0);
});
