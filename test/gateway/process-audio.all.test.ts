/** The converter makes a note as phones record it of each row of docs/inputs.md, and of all that it may be sent. */
import { readFile, writeFile } from 'node:fs/promises';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { packVoiceNote } from 'soundpost-media/ogg/voice-form';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ways } from '../../packages/media/test/ways-in.ts';
import { type Answer, makeFolder, run, startTestGateway, type TestGateway } from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;

beforeAll(async () => {
  [redis, folder] = await Promise.all([startTestRedis(), makeFolder()]);
  // A busy machine may keep this process from renewing its lease.
  const election = { timing: { leaseMs: 60_000 } };
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path, election });
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

async function isNote({ body }: Answer): Promise<boolean> {
  const path = join(folder.path, 'answer.ogg');
  await writeFile(path, Buffer.from(body.audio, 'base64'));
  return (await packVoiceNote(path, devNull)).isUntouched;
}

it.each(ways)('$name: $demuxer with $codec', async ({ name, file }) => {
  const body = new FormData();
  body.append('file', new Blob([await readFile(await file(name))]), name);
  const answer = await gateway.call('POST', '/process-audio', body);
  expect(answer, JSON.stringify(answer.body).slice(0, 300)).toMatchObject({
    status: 200,
    body: { format: 'ogg', duration: expect.any(Number) },
  });
  expect(await isNote(answer)).toBe(true);
});

it('takes 24 MiB of base64', async () => {
  const wav = join(folder.path, 'long.wav');
  const seconds = 580;
  await run('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', `sine=220:r=16000:d=${seconds}`, '-c:a', 'pcm_s16le', wav],
  ]);
  const bytes = Buffer.alloc(18 * 1024 * 1024);
  (await readFile(wav)).copy(bytes);
  const field = Buffer.from('--x\r\nContent-Disposition: form-data; name="base64"\r\n\r\n');
  const body = Buffer.concat([field, Buffer.from(bytes.toString('base64')), Buffer.from('\r\n--x--\r\n')]);
  const type = { 'content-type': 'multipart/form-data; boundary=x' };
  const answer = await gateway.call('POST', '/process-audio', body, type);
  expect(answer).toMatchObject({ status: 200, body: { duration: seconds } });
  expect(await isNote(answer)).toBe(true);
});
