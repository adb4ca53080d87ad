/** API, worker and gateway as on three machines: nothing in common but a Redis and a bucket, each with a folder of its own. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ada, messagesTo } from './inbox.ts';
import { useVideos } from './videos.ts';

const GATEWAY_KEY = 'the-gateways-own-key';
const CHUNK = 'application/offset+octet-stream';

const videos = useVideos();
let redis: TestRedis;
let s3: S3Server;
let home: ServiceHome;
let client: Client;
let api = '';
let gateway = '';

beforeAll(async () => {
  redis = await startTestRedis();
  s3 = await S3Server.start();
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that three machines share, of 32 bytes or more',
    GATEWAY_API_KEY: GATEWAY_KEY,
    ...s3.environment(''),
  });
  const on = (machine: string) => ({ DATA_DIR: join(home.folder, machine) });
  api = await home.start('api', on('api')).says(/^API\s+(http\S+)/m);
  const addresses = { PUBLIC_URL: api, GATEWAY_EVENTS_URL: `${api}/hooks/gateway` };
  gateway = await home.start('gateway', { ...on('gateway'), ...addresses }).says(/^Gateway\s+(http\S+)/m);
  const worker = home.start('worker', { ...on('worker'), ...addresses, GATEWAY_URL: gateway });
  await worker.says(/^Worker/m);
  client = new Client(api, home.key);
});
afterAll(async () => {
  await home.remove();
  await s3.close();
  await redis.close();
});

/** Files that a process has on its own disk, also for the moment. */
async function filesOf(machine: string): Promise<string[]> {
  const folder = join(home.folder, machine);
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

async function uploaded(bytes: Buffer): Promise<string> {
  const headers = { 'x-api-key': home.key, 'tus-resumable': '1.0.0' };
  const begun = await fetch(`${api}/v1/uploads`, {
    method: 'POST',
    headers: { ...headers, 'upload-length': String(bytes.length) },
  });
  const location = begun.headers.get('location') ?? '';
  for (const [start, end] of [
    [0, 1000],
    [1000, bytes.length],
  ] as const) {
    const sent = await fetch(location, {
      method: 'PATCH',
      headers: { ...headers, 'content-type': CHUNK, 'upload-offset': String(start) },
      body: new Uint8Array(bytes.subarray(start, end)),
    });
    expect(sent.status).toBe(204);
  }
  return location.split('/').at(-1) ?? '';
}

it('an upload becomes a file and a voice message, all of it by way of the bucket', async () => {
  const file = await uploaded(await readFile(videos.talk));
  const jobId = await client.submit({
    source: { type: 'upload', file },
    output: { format: 'mp3' },
    options: { voiceMessage: { instance: 'main', number: ada.number } },
  });
  const { outputFile } = await client.completed(jobId);
  const { bytes } = await client.bytes(`/v1/download/${jobId}`);
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(outputFile.sha256);

  const sent = await until('the voice message was sent', async () => {
    const { body } = await client.call('GET', `/v1/jobs/${jobId}`);
    expect(body.data.voiceMessage.status).not.toBe('failed');
    return body.data.voiceMessage.status === 'sent' && body.data.voiceMessage;
  });
  const arrived = await messagesTo(gateway, ada.jid, { apikey: GATEWAY_KEY });
  const { audioMessage } = arrived.find(({ key }) => key.id === sent.key.id)?.message ?? {};
  const encrypted = Buffer.from(await (await fetch(audioMessage.url)).arrayBuffer());
  expect(createHash('sha256').update(encrypted).digest('base64')).toBe(audioMessage.fileEncSha256);
  const part = await fetch(audioMessage.url, { headers: { range: 'bytes=10-19' } });
  expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, encrypted.subarray(10, 20)]);

  expect(
    s3
      .contents()
      .map((key) => key.split('/')[0])
      .sort(),
  ).toEqual(['files', 'files', 'media', 'soundpost-mark.json', 'uploads']);
  // A folder may go while it is read.
  for (const machine of ['api', 'worker', 'gateway']) {
    await until(
      `nothing lies on the disk of the ${machine}`,
      async () => (await filesOf(machine).catch(() => undefined))?.length === 0,
    );
  }

  await client.call('DELETE', `/v1/jobs/${jobId}`);
  await client.call('DELETE', `/v1/uploads/${file}`);
  expect((await client.bytes(`/v1/download/${jobId}`)).status).toBe(410);
  expect(
    s3
      .contents()
      .map((key) => key.split('/')[0])
      .sort(),
  ).toEqual(['media', 'soundpost-mark.json']);
});
