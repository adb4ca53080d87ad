/** How long things are kept, and what happens when the disk does not take them. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  ada,
  chatMessages,
  eventually,
  type GatewaySetting,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;

beforeEach(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await start({});
});

afterEach(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const start = (setting: Partial<GatewaySetting>): Promise<TestGateway> =>
  startTestGateway({ redisUrl: redis.url, dataDir: folder.path, ...setting });

async function restart(setting: Partial<GatewaySetting>): Promise<void> {
  await gateway.close();
  gateway = await start(setting);
}

async function send() {
  const tone = join(folder.path, 'tone.ogg');
  await makeTone(tone, 1);
  const audio = (await readFile(tone)).toString('base64');
  return gateway.call('POST', '/message/sendMessengerAudio/main', { number: ada.number, audio });
}

it('a message and its media go when they have been kept long enough', async () => {
  // Longer than a send takes.
  const mediaTtlSeconds = 5;
  await restart({ mediaTtlSeconds });
  const { body } = await send();
  const { directPath } = body.message.audioMessage;
  const media = async () => (await fetch(`${gateway.url}${directPath}`)).status;
  expect(await media()).toBe(200);
  await eventually(
    async () => {
      await restart({ mediaTtlSeconds });
      return media();
    },
    (status) => status === 404,
  );
  expect(
    await eventually(
      () => chatMessages(gateway, 'main', ada.jid),
      ({ length }) => length === 0,
    ),
  ).toEqual([]);
  await expect.poll(() => readdir(join(folder.path, 'storage'))).not.toContain('media');
});

it('workspaces of a gateway that was killed go when another takes over', async () => {
  const standby = await start({ election: { timing: { retryMs: 50 } } });
  // pid 1 lives on every system, but it was not started at tick 7.
  const ofDeadProcess = join(folder.path, 'workspaces', `${hostname()}.1.7`);
  await mkdir(join(ofDeadProcess, 'send-abc123'), { recursive: true });
  await gateway.close();
  gateway = standby;
  await expect.poll(() => existsSync(ofDeadProcess)).toBe(false);
});

it('a storage that takes nothing is 503, and nothing appears in the chat', async () => {
  const storage = join(folder.path, 'storage');
  await rm(storage, { recursive: true, force: true });
  // A file where the folder should be: root, too, cannot write below it.
  await writeFile(storage, '');
  expect(await send()).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
  expect(await chatMessages(gateway, 'main', ada.jid)).toEqual([]);
  await expect
    .poll(() => gateway.call('GET', '/health/ready'))
    .toMatchObject({ status: 200, body: { storage: 'unreachable' } });
});

it('audio that does not come in time is 504', async () => {
  const silent = createServer(() => undefined);
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const address = silent.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  // Long enough for the number to be looked up.
  await restart({ sendTimeoutMs: 4000, outboundAllow: `127.0.0.1:${port}` });
  const answer = await gateway.call('POST', '/message/sendMessengerAudio/main', {
    number: ada.number,
    audio: `http://127.0.0.1:${port}/never.mp3`,
  });
  expect(answer).toMatchObject({
    status: 504,
    body: { code: 'timeout', response: { message: ['preparing the message took too long'] } },
  });
  silent.closeAllConnections();
  silent.close();
});
