/** The converter that the public server calls (decisions F2), as its own code calls it, and by hand. */
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { packVoiceNote } from 'soundpost-media/ogg/voice-form';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway } from '../../src/gateway/start.ts';
import { startTranscriber, type TranscriberStub } from '../followups/transcripts/transcriber-stub.ts';
import {
  type Answer,
  caller,
  gatewayOptions,
  makeFolder,
  makeTone,
  run,
  startTestGateway,
} from './gateway-fixture.ts';

const MIB = 1024 * 1024;

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let transcriber: TranscriberStub;
let audioServer: Server;
let audioUrl: string;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let call: ReturnType<typeof caller>;
let mp3: Buffer;

beforeAll(async () => {
  [redis, folder, transcriber] = await Promise.all([startTestRedis(), makeFolder(), startTranscriber()]);
  await makeTone(join(folder.path, 'tone.mp3'), 3);
  mp3 = await readFile(join(folder.path, 'tone.mp3'));
  audioServer = createServer((request, response) => {
    response.writeHead(request.url === '/tone.mp3' ? 200 : 404).end(request.url === '/tone.mp3' ? mp3 : '');
  }).listen(0, '127.0.0.1');
  await once(audioServer, 'listening');
  const { port } = audioServer.address() as AddressInfo;
  audioUrl = `http://127.0.0.1:${port}/tone.mp3`;
  gateway = await startGateway({
    ...(await gatewayOptions({
      redisUrl: redis.url,
      dataDir: folder.path,
      outboundAllow: `127.0.0.1:${port}`,
      // A busy machine may keep this process from renewing its lease.
      election: { timing: { leaseMs: 60_000 } },
    })),
    transcriber: { url: transcriber.url, apiKey: 'tk', model: 'whisper-1', timeoutMs: 30_000 },
  });
  call = caller(`http://127.0.0.1:${gateway.port}`);
});

afterAll(async () => {
  await gateway.close();
  audioServer.close();
  await transcriber.close();
  await redis.close();
  await folder.remove();
});

function form(fields: Record<string, string>, file?: Buffer): FormData {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  if (file !== undefined) body.append('file', new Blob([new Uint8Array(file)]), 'tone.mp3');
  return body;
}

const convert = (body: unknown, headers?: Record<string, string>): Promise<Answer> =>
  call('POST', '/process-audio', body, headers);

const urlencoded = { 'content-type': 'application/x-www-form-urlencoded' };

/** The answered file. */
async function saved({ body }: Answer): Promise<string> {
  const path = join(folder.path, 'answer');
  await writeFile(path, Buffer.from(body.audio, 'base64'));
  return path;
}

async function probed(answer: Answer): Promise<string> {
  const wanted = 'format=format_name:stream=codec_name';
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-show_entries', wanted, '-of', 'default=nw=1:nk=1'],
    await saved(answer),
  ]);
  return stdout.trim().split('\n').join(' in ');
}

const base64 = (): string => mp3.toString('base64');

const forms: Record<string, () => Promise<Answer>> = {
  'a file': () => convert(form({}, mp3)),
  'an address': () => convert(form({ url: audioUrl })),
  'base64, as the public server sends it': () => convert(form({ base64: base64() })),
  'a data URI': () => convert(form({ base64: `data:audio/mpeg;base64,${base64()}` })),
  'an address, urlencoded': () => convert(new URLSearchParams({ url: audioUrl }).toString(), urlencoded),
  'base64 as the converter’s own page sends it by curl, with bare + and line breaks': () =>
    convert(`base64=${base64().replace(/.{76}/g, '$&\n')}&format=`, urlencoded),
};

describe('what comes', () => {
  it.for(Object.entries(forms))('is %s', async ([, ask]) => {
    const answer = await ask();
    expect(answer).toMatchObject({ status: 200, body: { duration: 3, format: 'ogg' } });
    expect((await packVoiceNote(await saved(answer), devNull)).isUntouched).toBe(true);
  });

  it('is 24 MiB of base64 at most, and told so', async () => {
    const field = Buffer.from('--x\r\nContent-Disposition: form-data; name="base64"\r\n\r\n');
    const body = Buffer.concat([field, Buffer.alloc(24 * MIB + 1, 'A'), Buffer.from('\r\n--x--\r\n')]);
    const { status, body: refusal } = await convert(body, {
      'content-type': 'multipart/form-data; boundary=x',
    });
    const words = 'body: a text field may have 24 MiB at most; send larger audio as a file';
    expect({ status, ...refusal }).toMatchObject({ status: 413, response: { message: [words] } });
  });
});

it('holds the text fields of a form in memory together, so they are bounded together', async () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, nth) => [`f${nth}`, 'A'.repeat(60 * 1024)]));
  const { status, body } = await call('POST', '/message/sendMessengerAudio/main', form(many));
  expect({ status, code: body.code }).toEqual({ status: 413, code: 'payload_too_large' });
});

it.each([
  ['ogg', 'opus in ogg'],
  ['mp3', 'mp3 in mp3'],
  ['mp4', 'aac in aac'],
])('%s is %s', async (format, found) => {
  const wav = join(folder.path, 'tone.wav');
  await makeTone(wav, 3);
  const answer = await convert(form({ format }, await readFile(wav)));
  expect(answer).toMatchObject({ status: 200, body: { duration: 3, format } });
  expect(await probed(answer)).toBe(found);
});

describe('is refused', () => {
  const rows: Record<string, { ask: () => Promise<Answer>; status: number; message: string }> = {
    'a wrong key': {
      ask: () => convert(form({}, mp3), { apikey: 'wrong-key-wrong-key' }),
      ...{ status: 401, message: 'apikey: is missing or has no access to this' },
    },
    'another format': {
      ask: () => convert(form({ format: 'flac' }, mp3)),
      ...{ status: 400, message: 'format: must be ogg, mp3 or mp4' },
    },
    nothing: {
      ask: () => convert(form({ url: '', base64: '' })),
      ...{ status: 400, message: 'body: must have exactly one of file, url and base64' },
    },
    'two at once': {
      ask: () => convert(form({ url: audioUrl }, mp3)),
      ...{ status: 400, message: 'body: must have exactly one of file, url and base64' },
    },
    'no sound': {
      ask: () => convert(form({}, Buffer.from('<!doctype html><title>Sign in</title>'))),
      ...{ status: 400, message: 'file: the file is a web page, not a media file' },
    },
    'base64 that is none': {
      ask: () => convert(form({ base64: '!!' })),
      ...{ status: 400, message: 'base64: must be base64 or a base64 data URI' },
    },
    'a private address': {
      ask: () => convert(form({ url: 'http://127.0.0.1:9/a.mp3' })),
      ...{ status: 400, message: 'OUTBOUND_ALLOW' },
    },
    'an address without the file': {
      ask: () => convert(form({ url: `${audioUrl}.gone` })),
      ...{ status: 400, message: 'url: ' },
    },
    JSON: {
      ask: () => convert({ base64: base64() }),
      ...{
        status: 415,
        message: 'Content-Type: must be multipart/form-data or application/x-www-form-urlencoded',
      },
    },
  };

  it.for(Object.entries(rows))('%s', async ([, { ask, status, message }]) => {
    const answer = await ask();
    expect(answer.status).toBe(status);
    expect(answer.body.response.message.join()).toContain(message);
    expect(answer.body).toMatchObject({ status, requestId: expect.any(String) });
  });
});

describe('transcribe', () => {
  it('adds what is said, asked for in the language', async () => {
    const { body } = await convert(form({ transcribe: 'true', language: 'pt-BR' }, mp3));
    expect(body).toMatchObject({ duration: 3, format: 'ogg', transcription: 'Part 1.' });
    expect(transcriber.asked.at(-1)).toMatchObject({ fields: { language: 'pt' }, seconds: 3 });
    expect(await convert(form({ transcribe: 'false' }, mp3))).not.toHaveProperty('body.transcription');
  });

  it('is an error if the transcriber fails, without its words', async () => {
    transcriber.answer = (response) => response.writeHead(401).end('the key tk is wrong');
    const { status, body } = await convert(form({ transcribe: 'true' }, mp3));
    expect({ status, code: body.code }).toEqual({ status: 502, code: 'network_refused' });
    expect(JSON.stringify(body)).not.toContain('is wrong');
  });

  it('without a transcriber names the variable, before anything is fetched', async () => {
    const other = await startTestRedis();
    const lone = await startTestGateway({ redisUrl: other.url, dataDir: join(folder.path, 'lone') });
    const answer = await lone.call('POST', '/process-audio', form({ transcribe: 'true', url: audioUrl }));
    expect(answer).toMatchObject({ status: 501, body: { code: 'unsupported' } });
    expect(answer.body.response.message.join()).toContain('TRANSCRIBER_URL');
    await lone.close();
    await other.close();
  });
});

it('leaves no file behind', async () => {
  expect(await readdir(join(folder.path, 'workspaces'), { recursive: true })).toEqual([expect.any(String)]);
});
