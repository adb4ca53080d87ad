import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Answer,
  ada,
  chatMessages,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

const SEND = '/message/sendMessengerAudio/main';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let tone: Buffer;
let audio: string;
let web: VideoServer;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  tone = await readFile(join(folder.path, 'tone.ogg'));
  audio = tone.toString('base64');
  web = await serveVideos(folder.path);
  gateway = await start();
});

const start = (): Promise<TestGateway> =>
  startTestGateway({ redisUrl: redis.url, dataDir: folder.path, outboundAllow: web.allow });

afterAll(async () => {
  await gateway.close();
  await web.close();
  await redis.close();
  await folder.remove();
});

const send = (key: string, body: object = {}): Promise<Answer> =>
  gateway.call('POST', SEND, { number: ada.number, audio, ...body }, { 'Idempotency-Key': key });

const idsIn = async (jid: string): Promise<string[]> =>
  (await chatMessages(gateway, 'main', jid)).map(({ key }) => key.id);

describe('the same Idempotency-Key', () => {
  it('and body answers the first answer again and sends nothing', async () => {
    const first = await send('once');
    const again = await send('once');
    expect(again).toMatchObject({ status: 200, body: first.body });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(await idsIn(ada.jid)).toEqual([first.body.key.id]);
  });

  it('and the same file as multipart, whatever its boundary, answers the first answer again', async () => {
    const form = (file: Buffer): FormData => {
      const body = new FormData();
      body.append('number', ada.number);
      body.append('file', new Blob([new Uint8Array(file)]), 'a.ogg');
      return body;
    };
    const post = (file: Buffer) => gateway.call('POST', SEND, form(file), { 'Idempotency-Key': 'form' });
    const first = await post(tone);
    expect((await post(tone)).body).toEqual(first.body);
    expect((await post(Buffer.concat([tone, Buffer.from('x')]))).status).toBe(422);
  });

  it('while the first request runs is refused with 409 and Retry-After', async () => {
    web.hold();
    const first = send('twice', { audio: web.url('tone.ogg') });
    await until('its sound is asked for', () => web.requests.length > 0);
    const second = await send('twice', { audio: web.url('tone.ogg') });
    web.letGo();
    expect([(await first).status, second.status]).toEqual([200, 409]);
    expect(second.body.code).toBe('idempotency_in_progress');
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  it('on another instance is another request', async () => {
    await gateway.call('POST', '/instance/create', { instanceName: 'other' });
    const first = await send('shared');
    const { body } = await gateway.call(
      'POST',
      '/message/sendMessengerAudio/other',
      { number: ada.number, audio },
      { 'Idempotency-Key': 'shared' },
    );
    expect(body.key.id).not.toBe(first.body.key.id);
  });

  it('after a failure tries again, but only with the same body', async () => {
    const failed = await send('mended', { number: '4930111' });
    expect(failed.body.code).toBe('unknown_recipient');
    expect((await send('mended', { number: '4930111' })).body.code).toBe('unknown_recipient');
    expect((await send('mended')).status).toBe(422);
  });
});
