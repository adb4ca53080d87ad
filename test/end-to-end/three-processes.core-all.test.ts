/** API, worker and gateway as three processes on one Redis, and a client that uses them as documented. */
import { createHash } from 'node:crypto';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { Client, receiveWebhooks, type WebhookReceiver } from 'soundpost-testing/client';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ada, messagesTo, playOtherSide } from './inbox.ts';
import { useVideos } from './videos.ts';

const GATEWAY_KEY = 'the-gateways-own-key';

const videos = useVideos();
let redis: TestRedis;
let home: ServiceHome;
let web: VideoServer;
let hooks: WebhookReceiver;
let client: Client;
let api = '';
let gateway = '';

beforeAll(async () => {
  redis = await startTestRedis();
  web = await serveVideos(videos.folder);
  hooks = await receiveWebhooks();
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that three processes share, of 32 bytes or more',
    GATEWAY_API_KEY: GATEWAY_KEY,
    OUTBOUND_ALLOW: `${web.allow},${hooks.allow}`,
  });
  api = await home.start('api').says(/^API\s+(http\S+)/m);
  const addresses = { PUBLIC_URL: api, GATEWAY_EVENTS_URL: `${api}/hooks/gateway` };
  gateway = await home.start('gateway', addresses).says(/^Gateway\s+(http\S+)/m);
  await home.start('worker', { ...addresses, GATEWAY_URL: gateway }).says(/^Worker/m);
  client = new Client(api, home.key);
});
afterAll(async () => {
  await home.remove();
  await hooks.close();
  await web.close();
  await redis.close();
});

async function messageStatusIs(jobId: string, wanted: string): Promise<boolean> {
  const { body } = await client.call('GET', `/v1/jobs/${jobId}`);
  return body.data.voiceMessage.messageStatus === wanted;
}

async function verified({ headers, text }: { headers: Readonly<Record<string, string>>; text: string }) {
  const { body } = await client.call('GET', '/v1/webhooks/secret');
  return new Webhook(body.data.secret).verify(text, { ...headers });
}

describe('a job', () => {
  it.runIf(currentRun === 'core')(
    'from a URL ends with a file, a signed webhook and a voice message',
    async () => {
      const jobId = await client.submit({
        source: { type: 'url', url: web.url('talk.mp4') },
        output: { format: 'mp3' },
        options: { webhook: hooks.url, voiceMessage: { instance: 'main', number: ada.number } },
      });
      const job = await client.completed(jobId);
      expect(job).toMatchObject({
        jobId,
        status: 'completed',
        progress: 100,
        currentStep: 'finalizing',
        inputFile: { name: 'talk.mp4', format: 'mp4', tracks: [{ index: 0, codec: 'aac' }] },
        outputFile: { filename: 'talk.mp3', format: 'mp3', codec: 'mp3', copied: false },
      });

      // By key, and by the signed address that needs none, also under the prefix.
      for (const address of [
        `/v1/download/${jobId}`,
        `/audio-extract/v1/download/${jobId}`,
        job.outputFile.url,
      ]) {
        const { status, headers, bytes } = await client.bytes(address);
        expect([status, headers.get('content-type'), bytes.length]).toEqual([
          200,
          'audio/mpeg',
          job.outputFile.size,
        ]);
        expect(createHash('sha256').update(bytes).digest('hex')).toBe(job.outputFile.sha256);
      }

      const [notification, ...more] = await hooks.notifications(jobId, 'job.completed');
      expect(more).toEqual([]);
      expect(await verified(notification ?? { headers: {}, text: '' })).toMatchObject({
        event: 'job.completed',
        jobId,
        status: 'completed',
        downloadUrl: `/audio-extract/v1/download/${jobId}`,
        outputFile: { sha256: job.outputFile.sha256 },
      });
      // The address that the webhook gives works, though it was signed by another process.
      expect((await client.bytes(notification?.json.outputFile.url)).status).toBe(200);

      const sent = await until('the voice message was seen to arrive', async () => {
        const { body } = await client.call('GET', `/v1/status/${jobId}`);
        return body.data.voiceMessage.messageStatus === 'DELIVERY_ACK' && body.data.voiceMessage;
      });
      expect(sent).toMatchObject({
        status: 'sent',
        key: { remoteJid: ada.jid, fromMe: true },
        fitsVoiceBubble: true,
      });
      const arrived = await messagesTo(gateway, ada.jid, { apikey: GATEWAY_KEY });
      const ours = arrived.filter(({ key }) => key.id === sent.key.id);
      expect(ours).toHaveLength(1);
      expect(ours[0].message.audioMessage).toMatchObject({ ptt: true, mimetype: 'audio/ogg; codecs=opus' });
      expect(ours[0].message.audioMessage.seconds).toBeCloseTo(job.outputFile.duration, -1);

      // What the other side does with the message shows in the job.
      await playOtherSide(gateway, `chats/${ada.jid}/opened`, GATEWAY_KEY);
      await until('the job to say that it was read', () => messageStatusIs(jobId, 'READ'));
      await playOtherSide(gateway, `chats/${ada.jid}/messages/${sent.key.id}/played`, GATEWAY_KEY);
      await until('the job to say that it was played', () => messageStatusIs(jobId, 'PLAYED'));
    },
  );

  it.each(
    rowsOfRun(
      [
        ['mp3', 'mp3'],
        ['aac', 'aac'],
        ['m4a', 'aac'],
        ['flac', 'flac'],
        ['wav', 'pcm_s16le'],
        ['ogg', 'vorbis'],
        ['opus', 'opus'],
        ['voice', 'opus'],
      ],
      2,
    ),
  )('from an upload comes out as %s', async (format, codec) => {
    const { status, headers, body } = await client.upload(videos.talk, { output: { format } });
    expect(status).toBe(202);
    expect(headers.get('location')).toBe(`${api}/v1/status/${body.data.jobId}`);
    const { outputFile } = await client.completed(body.data.jobId);
    expect(outputFile).toMatchObject({ format, codec });
    const { bytes } = await client.bytes(outputFile.url);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(outputFile.sha256);
  });

  it.runIf(currentRun === 'core')('submitted under the prefix is the same job without it', async () => {
    const source = { type: 'url', url: web.url('talk.mp4') };
    const jobId = await client.submit({ source, output: { format: 'opus' } }, '/audio-extract');
    await client.completed(jobId);
    const [plain, prefixed] = await Promise.all(
      ['', '/audio-extract'].map((prefix) => client.call('GET', `${prefix}/v1/status/${jobId}`)),
    );
    expect(prefixed?.status).toBe(200);
    expect(prefixed?.body.data).toEqual(plain?.body.data);
  });

  it.runIf(currentRun === 'core')(
    'that fails says so in the status and in the webhook, and no voice message is sent',
    async () => {
      const before = await messagesTo(gateway, ada.jid, { apikey: GATEWAY_KEY });
      const jobId = await client.submit({
        source: { type: 'url', url: web.url('missing.mp4') },
        output: { format: 'mp3' },
        options: { webhook: hooks.url, voiceMessage: { instance: 'main', number: ada.number } },
      });
      const { success, error } = await client.ended(jobId);
      expect(success).toBe(false);
      expect(error).toMatchObject({ code: 'DOWNLOAD_FAILED', details: 'HTTP 404' });
      const [notification] = await hooks.notifications(jobId, 'job.failed');
      expect(await verified(notification ?? { headers: {}, text: '' })).toMatchObject({
        event: 'job.failed',
        jobId,
        status: 'failed',
        error: { code: 'DOWNLOAD_FAILED' },
      });
      expect(await messagesTo(gateway, ada.jid, { apikey: GATEWAY_KEY })).toHaveLength(before.length);
    },
  );
});

it.runIf(currentRun === 'core')(
  'a batch becomes as many jobs in its order, each with a webhook of its own',
  async () => {
    const source = { type: 'url', url: web.url('talk.mp4') };
    const formats = ['mp3', 'flac', 'opus'];
    const { status, body } = await client.call('POST', '/v1/batch', {
      webhook: hooks.url,
      jobs: formats.map((format) => ({ source, output: { format } })),
    });
    expect([status, body.data.totalJobs]).toEqual([202, 3]);
    const ids: string[] = body.data.jobs.map(({ jobId }: { jobId: string }) => jobId);
    const jobs = await Promise.all(ids.map((jobId) => client.completed(jobId)));
    expect(jobs.map(({ outputFile, batchId }) => [outputFile.format, batchId])).toEqual(
      formats.map((format) => [format, body.data.batchId]),
    );
    const notifications = await Promise.all(ids.map((jobId) => hooks.notifications(jobId, 'job.completed')));
    expect(new Set(notifications.flat().map(({ headers }) => headers['webhook-id'])).size).toBe(3);
  },
);

it.runIf(currentRun === 'core')('another key sees none of it', async () => {
  const jobId = await client.submit({
    source: { type: 'url', url: web.url('talk.mp4') },
    output: { format: 'mp3' },
  });
  const stranger = home.run([process.execPath, 'src/main.ts', 'keys', 'create', '--name', 'stranger']);
  const other = new Client(api, await stranger.says(/(sp_\w+)/));
  expect((await other.call('GET', `/v1/status/${jobId}`)).body.error.code).toBe('JOB_NOT_FOUND');
  expect((await other.bytes(`/v1/download/${jobId}`)).status).toBe(404);
});
