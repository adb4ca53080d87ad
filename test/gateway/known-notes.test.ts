/** A voice note that was sent before is sent again without being looked into: the tools for that are taken away in between. */
import { readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type AudioMessage, SentMessage } from 'soundpost-contract/gateway';
import { fetch } from 'soundpost-testing/http';
import { mediaTools } from 'soundpost-testing/media-tools';
import { makeNativeNote } from 'soundpost-testing/native-note';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningGateway } from '../../src/gateway/gateway-options.ts';
import { startGateway } from '../../src/gateway/start.ts';
import { decrypted } from './decrypted.ts';
import { ada, caller, gatewayOptions, hedy, makeFolder, makeTone } from './gateway-fixture.ts';

const SEND = '/message/sendMessengerAudio/main';
const tools = ['ffmpeg', 'ffprobe'] as const;

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: RunningGateway;
let call: ReturnType<typeof caller>;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  for (const tool of tools) await symlink(mediaTools[`${tool}Path`], join(folder.path, tool));
  const options = await gatewayOptions({ redisUrl: redis.url, dataDir: folder.path });
  gateway = await startGateway({
    ...options,
    tools: {
      ...options.tools,
      ffmpegPath: join(folder.path, 'ffmpeg'),
      ffprobePath: join(folder.path, 'ffprobe'),
    },
  });
  call = caller(`http://127.0.0.1:${gateway.port}`);
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

async function note(seconds: number): Promise<Buffer> {
  const path = join(folder.path, `note-${seconds}`);
  await makeTone(`${path}.wav`, seconds);
  await makeNativeNote(`${path}.wav`, `${path}.ogg`);
  return readFile(`${path}.ogg`);
}

async function opened({ url, mediaKey }: AudioMessage): Promise<Buffer> {
  return decrypted(Buffer.from(await (await fetch(url)).arrayBuffer()), mediaKey).plain;
}

it('by whichever form, to whomever, under a key of its own', async () => {
  const [known, unknown] = [await note(2), await note(3)];
  const form = new FormData();
  form.append('number', ada.number);
  form.append('file', new Blob([known]), 'note.ogg');
  const first = SentMessage.parse((await call('POST', SEND, form)).body).message.audioMessage;

  for (const tool of tools) await rm(join(folder.path, tool));
  const answer = await call('POST', SEND, { number: hedy.number, audio: known.toString('base64') });
  expect(answer.status).toBe(200);
  const second = SentMessage.parse(answer.body).message.audioMessage;
  const { seconds, waveform, fileSha256, fileLength } = first;
  expect(second).toMatchObject({ seconds, waveform, fileSha256, fileLength });
  expect(seconds).toBe(2);
  expect(second.mediaKey).not.toBe(first.mediaKey);
  expect((await opened(second)).equals(known)).toBe(true);

  // One that was never sent has to be looked into.
  const refused = await call('POST', SEND, { number: hedy.number, audio: unknown.toString('base64') });
  expect(refused.status).toBeGreaterThanOrEqual(500);
});
