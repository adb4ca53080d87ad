import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { nameOfThisProcess } from 'soundpost-base/process-home';
import { SentMessage } from 'soundpost-contract/gateway';
import { packVoiceNote } from 'soundpost-media/ogg/voice-form';
import { fetch } from 'soundpost-testing/http';
import { SILK } from 'soundpost-testing/native-note';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decrypted } from './decrypted.ts';
import {
  ada,
  chatMessages,
  hedy,
  makeFolder,
  makeTone,
  run,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

const SEND = '/message/sendMessengerAudio/main';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let audioServer: Server;
let audioUrl: string;
let mp3: Buffer;
/** A voice note already: looked into once. */
let note: Buffer;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  await makeTone(join(folder.path, 'tone.mp3'), 3);
  mp3 = await readFile(join(folder.path, 'tone.mp3'));
  await makeTone(join(folder.path, 'tone.ogg'), 3);
  note = await readFile(join(folder.path, 'tone.ogg'));
  audioServer = createServer((request, response) => {
    response.writeHead(request.url === '/tone.mp3' ? 200 : 404).end(request.url === '/tone.mp3' ? mp3 : '');
  });
  audioServer.listen(0, '127.0.0.1');
  await once(audioServer, 'listening');
  const { port } = audioServer.address() as AddressInfo;
  audioUrl = `http://127.0.0.1:${port}`;
  gateway = await startTestGateway({
    redisUrl: redis.url,
    dataDir: folder.path,
    outboundAllow: `127.0.0.1:${port}`,
  });
});

afterAll(async () => {
  await gateway.close();
  audioServer.close();
  await redis.close();
  await folder.remove();
});

function form(fields: Record<string, string>, file: Buffer = note): FormData {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  body.append('file', new Blob([new Uint8Array(file)]), 'anything.bin');
  return body;
}

describe('the forms of audio', () => {
  const forms: Record<string, () => unknown> = {
    'an http URL': () => ({ number: ada.number, audio: `${audioUrl}/tone.mp3` }),
    base64: () => ({ number: ada.number, audio: note.toString('base64') }),
    'base64 with line breaks': () => ({
      number: ada.number,
      audio: note.toString('base64').replace(/.{76}/g, '$&\r\n'),
    }),
    'base64url without padding': () => ({ number: ada.number, audio: note.toString('base64url') }),
    'a data URI': () => ({ number: ada.number, audio: `data:audio/ogg;base64,${note.toString('base64')}` }),
    'a multipart file': () => form({ number: ada.number }),
    'a multipart field with a URL': () => {
      const body = new FormData();
      body.append('number', ada.number);
      body.append('audio', `${audioUrl}/tone.mp3`);
      return body;
    },
  };
  it.for(Object.entries(forms))('takes %s', async ([, body]) => {
    const { status, body: sent } = await gateway.call('POST', SEND, body());
    expect(status).toBe(200);
    expect(sent.message.audioMessage.seconds).toBe(3);
  });
});

describe('the answer', () => {
  it('carries a waveform of 64 values from 0 to 100 that follows the sound', async () => {
    const { body } = await gateway.call('POST', SEND, { number: ada.number, audio: mp3.toString('base64') });
    const waveform = Buffer.from(body.message.audioMessage.waveform, 'base64');
    expect(waveform).toHaveLength(64);
    expect(Math.max(...waveform)).toBeLessThanOrEqual(100);
    // The tone swells and fades three times.
    const loud = [10, 32, 53].map((bar) => waveform[bar] ?? 0);
    const soft = [0, 21, 42, 63].map((bar) => waveform[bar] ?? 0);
    expect(Math.min(...loud)).toBeGreaterThan(Math.max(...soft) + 20);
  });

  it('leaves a voice note as it is', async () => {
    expect((await sentFile(form({ number: ada.number }))).equals(note)).toBe(true);
  });

  it('puts the frames of a note in another framing together, and keeps them', async () => {
    const path = join(folder.path, 'one-a-packet.ogg');
    await run('ffmpeg', [
      '-v',
      'error',
      '-i',
      join(folder.path, 'tone.mp3'),
      ...SILK,
      '-b:a',
      '24k',
      '-y',
      path,
    ]);
    const mended = join(folder.path, 'mended.ogg');
    await packVoiceNote(path, mended);
    const sent = await sentFile(form({ number: ada.number }, await readFile(path)));
    expect(sent.equals(await readFile(mended))).toBe(true);
  });

  it('leaves any Ogg Opus file with one channel as it is where that is asked for, and converts all else', async () => {
    const path = join(folder.path, 'full-band.ogg');
    await run('ffmpeg', [
      ...['-v', 'error', '-i', join(folder.path, 'tone.mp3'), '-ac', '1', '-c:a', 'libopus', '-b:a', '64k'],
      ...['-y', path],
    ]);
    const file = await readFile(path);
    const asItIs = { number: ada.number, encoding: 'false' };
    expect((await sentFile(form(asItIs, file))).equals(file)).toBe(true);
    const converted = await sentFile(form({ number: ada.number }, file));
    await writeFile(path, converted);
    expect(await packVoiceNote(path, devNull)).toMatchObject({ isUntouched: true });
    const ofMp3 = await sentFile(form(asItIs, await readFile(join(folder.path, 'tone.mp3'))));
    await writeFile(path, ofMp3);
    expect(await packVoiceNote(path, devNull)).toMatchObject({ isUntouched: true });
  });
});

async function sentFile(body: FormData): Promise<Buffer> {
  const answer = await gateway.call('POST', SEND, body);
  const { audioMessage } = SentMessage.parse(answer.body).message;
  const file = Buffer.from(await (await fetch(audioMessage.url)).arrayBuffer());
  return decrypted(file, audioMessage.mediaKey).plain;
}

describe('whom it goes to', () => {
  it('a group by its JID, its foreign JID or its number', async () => {
    const { body: chats } = await gateway.call('GET', '/inbox/api/instances/main/chats');
    const group = chats.find((chat: { isGroup: boolean }) => chat.isGroup).jid;
    const digits = group.split('@')[0];
    for (const number of [group, `${digits}@g.us`, digits]) {
      const { body } = await gateway.call('POST', SEND, { number, audio: note.toString('base64') });
      expect(body.key.remoteJid).toBe(group);
    }
  });
});

describe('the other fields', () => {
  it('are kept with the message, and unknown ones are ignored', async () => {
    const { status, body: sent } = await gateway.call('POST', SEND, {
      number: hedy.number,
      audio: note.toString('base64'),
      quoted: { key: { id: 'NEVER-SEEN' }, message: { conversation: 'How was it?' } },
      mentioned: ['+1 202 555 0103'],
      mentionsEveryOne: false,
      linkPreview: true,
      mimetype: 'audio/mpeg',
      fileName: 'a.mp3',
      encoding: true,
    });
    expect(status).toBe(200);
    const [message] = await chatMessages(gateway, 'main', hedy.jid);
    expect(message).toMatchObject({
      key: { id: sent.key.id },
      context: {
        quoted: { id: 'NEVER-SEEN', text: 'How was it?' },
        mentioned: ['+1 202 555 0103'],
        mentionsEveryOne: false,
        linkPreview: true,
      },
    });
  });

  it('come as text in a multipart body', async () => {
    const { body: sent } = await gateway.call(
      'POST',
      SEND,
      form({
        number: hedy.number,
        delay: '1',
        mentioned: '["12025550103", 12025550101]',
        mentionsEveryOne: 'true',
        quoted: '{"key": {"id": "A"}}',
      }),
    );
    const message = (await chatMessages(gateway, 'main', hedy.jid)).at(-1);
    expect(message).toMatchObject({
      key: { id: sent.key.id },
      context: { mentioned: ['12025550103', '12025550101'], mentionsEveryOne: true, quoted: { id: 'A' } },
    });
  });
});

it('every brand has its path', async () => {
  const body = { number: ada.number, audio: note.toString('base64') };
  expect((await gateway.call('POST', '/message/sendWhatsAppAudio/main', body)).status).toBe(200);
  expect((await gateway.call('POST', '/message/sendPigeonAudio/main', body)).status).toBe(404);
});

it('leaves nothing in the workspaces', async () => {
  await gateway.call('POST', SEND, { number: ada.number, audio: Buffer.from('no').toString('base64') });
  // A send is answered before its folder goes; that of the process stays.
  const left = () => readdir(join(folder.path, 'workspaces'), { recursive: true });
  await expect.poll(left).toEqual([await nameOfThisProcess()]);
});

describe('the encrypted file', () => {
  let url: string;
  let whole: Buffer;
  beforeAll(async () => {
    const { body } = await gateway.call('POST', SEND, { number: ada.number, audio: note.toString('base64') });
    url = body.message.audioMessage.url;
    whole = Buffer.from(await (await fetch(url)).arrayBuffer());
  });

  it('is served without a key, for ever and for everybody', async () => {
    const response = await fetch(url, { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-length')).toBe(String(whole.length));
    expect(response.headers.get('cache-control')).toContain('immutable');
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    const etag = response.headers.get('etag') ?? '';
    // fetch would add no-cache, which asks for the whole file again.
    const again = await fetch(url, { headers: { 'If-None-Match': etag, 'Cache-Control': 'max-age=0' } });
    expect(again.status).toBe(304);
  });

  it('answers ranges', async () => {
    const part = await fetch(url, { headers: { Range: 'bytes=100-199' } });
    expect(part.status).toBe(206);
    expect(part.headers.get('content-range')).toBe(`bytes 100-199/${whole.length}`);
    expect(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(100, 200))).toBe(true);
    const tail = await fetch(url, { headers: { Range: 'bytes=-10' } });
    expect(Buffer.from(await tail.arrayBuffer()).equals(whole.subarray(-10))).toBe(true);
    const beyond = await fetch(url, { headers: { Range: `bytes=${whole.length}-` } });
    expect(beyond.status).toBe(416);
    expect(beyond.headers.get('content-range')).toBe(`bytes */${whole.length}`);
    const stale = await fetch(url, { headers: { Range: 'bytes=0-9', 'If-Range': '"other"' } });
    expect(stale.status).toBe(200);
  });

  it.for(['0'.repeat(32), 'x', '..%2f..%2fsecret-key'])('knows no %s', async (id) => {
    const response = await fetch(`${gateway.url}/media/${id}.enc`);
    expect(response.status).toBe(404);
  });
});
