// @module-tag mount
/** What the API takes in while the disk has room for it, and what it does not. The volume of its files is a small one. */
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fetch } from 'soundpost-testing/http';
import { MIB, makeSmallVolume, type SmallVolume } from 'soundpost-testing/small-volume';
import { until } from 'soundpost-testing/until';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, TestService, useClips } from './api-fixture.ts';

const RESERVE = 4 * MIB;
const VIDEO = { 'content-type': 'video/mp4' };
const TUS = { 'tus-resumable': '1.0.0' };
const CHUNK = { ...TUS, 'content-type': 'application/offset+octet-stream' };
const MP3 = { format: 'mp3' };

const clip = useClips('tone.mp4');
let volume: SmallVolume;
let service: TestService;
beforeAll(async () => {
  volume = await makeSmallVolume(32 * MIB);
  const environment = {
    DATA_DIR: volume.folder,
    DISK_RESERVE_BYTES: String(RESERVE),
    MAX_INPUT_BYTES: String(16 * MIB),
  };
  service = await TestService.start({ parts: [], environment });
});
afterEach(() => volume.empty());
afterAll(async () => {
  await service.close();
  await volume.remove();
});

/** A video that is mostly padding. */
async function video(sizeBytes: number): Promise<Buffer> {
  const start = await readFile(clip('tone.mp4'));
  return Buffer.concat([start, Buffer.alloc(sizeBytes - start.length)]);
}

function form(bytes: Buffer, request?: object): FormData {
  const made = new FormData();
  if (request !== undefined) made.append('request', JSON.stringify(request));
  made.append('file', new Blob([new Uint8Array(bytes)]), 'talk.mp4');
  return made;
}

const post = (path: string, body: Buffer | FormData, headers = {}) =>
  service.call('POST', path, { body, headers });

function expectNoRoom(answer: Answer): void {
  expect(answer.status).toBe(503);
  expect(answer.body.error).toMatchObject({
    code: 'SERVICE_UNAVAILABLE',
    message: 'there is not enough disk space to store the file',
  });
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
}

/** Everything of uploads that takes space. */
async function left(): Promise<string[]> {
  const folders = ['uploads', '.unfinished'].map((name) => join(volume.folder, name));
  const entries = await Promise.all(
    folders.map((folder) => readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])),
  );
  return entries.flat().flatMap((entry) => (entry.isFile() ? [entry.name] : []));
}

/** The answer does not wait for a full disk to be tidied; what others had left before may go meanwhile. */
async function nothingIsLeft(before: readonly string[]): Promise<void> {
  await until('nothing of it is left', async () => (await left()).every((name) => before.includes(name)));
}

/** The head of a request and, when told to, some of its body; what comes back is read as text. */
async function raw(head: string): Promise<{ socket: Socket; answer: () => string }> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  let answer = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    answer += text;
  });
  socket.write(`${head}\r\nHost: here\r\nX-API-Key: ${service.key}\r\n\r\n`);
  return { socket, answer: () => answer };
}

/** Sends a body of which the service does not know how long it is. */
const unsized = (method: string, path: string, bytes: Buffer, headers: Record<string, string>) =>
  fetch(`${service.url}${path}`, {
    method,
    headers: { 'X-API-Key': service.key, ...headers },
    body: Readable.toWeb(Readable.from(bytes)) as ReadableStream,
    duplex: 'half',
  });

describe('a file that does not fit above the reserve', () => {
  it.each([
    ['a raw body', (bytes: Buffer) => post('/v1/uploads', bytes, VIDEO)],
    ['a submission', (bytes: Buffer) => post('/v1/extract', form(bytes, { output: MP3 }))],
    [
      'the beginning of a tus upload',
      (bytes: Buffer) =>
        service.call('POST', '/v1/uploads', { headers: { ...TUS, 'upload-length': String(bytes.length) } }),
    ],
  ])('is refused as %s, and a smaller one is not', async (_way, send) => {
    await volume.fillUpTo(RESERVE + 6 * MIB);
    const before = await left();
    expectNoRoom(await send(await video(7 * MIB)));
    await nothingIsLeft(before);
    expect([201, 202]).toContain((await send(await video(MIB))).status);
  });

  it('is refused before its bytes are sent', async () => {
    await volume.fillUpTo(RESERVE + 6 * MIB);
    const { socket, answer } = await raw(
      `POST /v1/uploads HTTP/1.1\r\nContent-Type: video/mp4\r\nContent-Length: ${7 * MIB}`,
    );
    await until('the answer is there', () => answer().includes('\r\n\r\n'));
    expect(answer()).toMatch(/^HTTP\/1.1 503 /);
    socket.destroy();
  });

  it('is still told that it is larger than allowed', async () => {
    await volume.fillUpTo(RESERVE + 6 * MIB);
    expect((await post('/v1/uploads', await video(17 * MIB), VIDEO)).status).toBe(413);
  });

  it('counts what others are sending', async () => {
    await volume.fillUpTo(RESERVE + 6 * MIB);
    const before = await left();
    const { socket } = await raw(
      `POST /v1/uploads HTTP/1.1\r\nContent-Type: video/mp4\r\nContent-Length: ${5 * MIB}`,
    );
    // Its space is taken before its first bytes are.
    socket.write(await video(MIB));
    await until('it is being stored', async () => (await left()).some((name) => !before.includes(name)));
    expectNoRoom(await post('/v1/uploads', await video(2 * MIB), VIDEO));
    socket.destroy();
    await until('the space is free again', async () => {
      return (await post('/v1/uploads', await video(2 * MIB), VIDEO)).status === 201;
    });
  });
});

describe('while the reserve is touched', () => {
  it('nothing is taken in, of whatever length, and what asks for no space is done', async () => {
    const sized = { ...TUS, 'upload-length': String(MIB) };
    const upload = new URL(
      (await service.call('POST', '/v1/uploads', { headers: sized })).headers.location ?? '',
    ).pathname;
    await volume.fillUpTo(RESERVE - MIB);
    expectNoRoom(await post('/v1/uploads', await video(200_000), VIDEO));
    expect((await unsized('POST', '/v1/uploads', await video(200_000), VIDEO)).status).toBe(503);
    expectNoRoom(
      await service.call('PATCH', upload, {
        body: await video(200_000),
        headers: { ...CHUNK, 'upload-offset': '0' },
      }),
    );
    const source = { type: 'url', url: service.outside.on('/video.mp4', () => undefined) };
    expect((await service.call('POST', '/v1/extract', { json: { source, output: MP3 } })).status).toBe(202);
    expect((await service.call('HEAD', upload, { headers: TUS })).status).toBe(200);
    expect((await service.call('DELETE', upload, { headers: TUS })).status).toBe(204);
  });

  it('health says so, and the service counts as ready', async () => {
    const ready = () => service.call('GET', '/health/ready', { key: null });
    expect(await ready()).toMatchObject({ status: 200, body: { status: 'ok', disk: 'ok' } });
    await volume.fillUpTo(RESERVE - MIB);
    expect(await ready()).toMatchObject({ status: 200, body: { status: 'ok', disk: 'low' } });
    expect((await service.call('GET', '/health/live', { key: null })).status).toBe(200);
  });
});

describe('a disk that becomes full while a file arrives', () => {
  it('answers 503 and leaves nothing of it', async () => {
    const before = await left();
    await volume.fillUpTo(RESERVE + MIB);
    const answer = await unsized('POST', '/v1/uploads', await video(8 * MIB), VIDEO);
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).not.toBeNull();
    expect(await answer.json()).toMatchObject({ error: { code: 'SERVICE_UNAVAILABLE' } });
    await nothingIsLeft(before);
  });

  it('answers a form in the same way', async () => {
    const before = await left();
    await volume.fillUpTo(RESERVE + MIB);
    const encoded = new Response(form(await video(8 * MIB)));
    const type = { 'content-type': encoded.headers.get('content-type') ?? '' };
    const bytes = Buffer.from(await encoded.arrayBuffer());
    expect((await unsized('POST', '/v1/extract', bytes, type)).status).toBe(503);
    await nothingIsLeft(before);
  });

  it('keeps nothing of a chunk by tus, whose sender goes on from before it', async () => {
    const bytes = await video(8 * MIB);
    const created = await service.call('POST', '/v1/uploads', {
      headers: { ...TUS, 'upload-length': String(bytes.length) },
    });
    const path = new URL(created.headers.location ?? '').pathname;
    const head = { ...CHUNK, 'upload-offset': '0' };
    await volume.fillUpTo(RESERVE + MIB);
    expect((await unsized('PATCH', path, bytes, head)).status).toBe(503);
    await until('its bytes are gone', async () => (await volume.freeBytes()) > RESERVE);
    const asked = await service.call('HEAD', path, { headers: TUS });
    expect(asked.headers['upload-offset']).toBe('0');
    await volume.empty();
    expect((await service.call('PATCH', path, { body: bytes, headers: head })).status).toBe(204);
  });
});
