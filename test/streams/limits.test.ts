/** What a stream may take of this machine, and where it may lead. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OutputRequest, outputsOf } from 'soundpost-contract/output-request';
import type { SourceRequest } from 'soundpost-media/source-request';
import { fetchStream } from 'soundpost-media/stream-source';
import { recordConnects } from 'soundpost-testing/connect-recorder';
import { fetch } from 'soundpost-testing/http';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { logger, makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { extract, placeStream } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const MIB = 1024 * 1024;
const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  const tone = ['-f', 'lavfi', '-i', 'sine=d=2', '-c:a', 'aac'];
  await copyFile(await cachedMedia('good.ts', tone), folder.at('good.ts'));
});
afterAll(async () => {
  await around.close();
  await web.close();
});

const playlist = (...lines: readonly string[]) =>
  ['#EXTM3U', '#EXT-X-TARGETDURATION:2', ...lines, '#EXT-X-ENDLIST'].join('\n');

/** Fetches a stream as the download step does. */
async function fetchPlaylist(
  text: string,
  url: string,
): Promise<{ claimedBytes: number; sizeBytes: number }> {
  const workspace = join(around.folder, crypto.randomUUID());
  await mkdir(workspace);
  const path = join(workspace, 'source');
  await writeFile(path, text);
  const space = around.services.disk.open();
  const { tools, outbound, limits } = around.services;
  const signal = new AbortController().signal;
  const outputs = outputsOf({ output: OutputRequest.parse({ format: 'mp3' }) });
  const request: SourceRequest = {
    ...{ url, outputs, workspace, tools, outbound, ...limits, signal, logger },
    makeRoom: (bytes) => space.grow(bytes, signal),
  };
  try {
    const stream = await fetchStream({ kind: 'hls', path, url }, request);
    if ('fileUrl' in stream) throw new Error('no segments');
    return { claimedBytes: space.claimedBytes, sizeBytes: stream.sizeBytes };
  } finally {
    space.release();
  }
}

it('room is claimed for the joined file and the segments on their way, not for each byte twice', async () => {
  const good = await (await fetch(web.url('good.ts'))).bytes();
  // What has no sound in it is null packets (ISO/IEC 13818-1 section 2.4.1).
  const packet = Buffer.alloc(188, 0xff);
  packet.set([0x47, 0x1f, 0xff, 0x10]);
  const nulls = Buffer.alloc(188 * Math.ceil((2 * MIB) / 188));
  for (let at = 0; at < nulls.length; at += 188) packet.copy(nulls, at);
  const segment = Buffer.concat([good, nulls]);
  web.texts.set('large.ts', segment);
  const segments = Array.from({ length: 20 }, () => ['#EXTINF:2,', '/large.ts']).flat();
  let failures = 0;
  web.intercept = ({ url }, response) => {
    if (url !== '/large.ts' || failures === 3) return false;
    failures += 1;
    response.writeHead(200, { 'content-length': segment.length });
    response.write(segment.subarray(0, MIB), () => response.destroy());
    return true;
  };
  const { claimedBytes, sizeBytes } = await fetchPlaylist(playlist(...segments), web.url('room.m3u8'));
  web.intercept = () => false;
  expect(sizeBytes).toBe(20 * segment.length);
  expect(claimedBytes).toBeGreaterThanOrEqual(sizeBytes);
  expect(claimedBytes).toBeLessThanOrEqual(sizeBytes + 9 * segment.length + 16 * MIB);
});

it.each([
  ['a segment', (http: string) => playlist('#EXTINF:2,', http)],
  ['a header', (http: string) => playlist(`#EXT-X-MAP:URI="${http}"`, '#EXTINF:2,', http)],
  ['a key', (http: string) => playlist(`#EXT-X-KEY:METHOD=AES-128,URI="${http}"`, '#EXTINF:2,', '/a.ts')],
  ['a playlist', (http: string) => ['#EXTM3U', '#EXT-X-STREAM-INF:BANDWIDTH=1', http].join('\n')],
])('%s without TLS is not fetched for a playlist that came by it', async (_what, text) => {
  const connects = recordConnects();
  try {
    // Nobody is there: what may be asked for is refused by the guard at the address.
    await expect(
      fetchPlaylist(text(web.url('good.ts')), 'https://10.0.0.1/index.m3u8'),
    ).rejects.toMatchObject({
      code: 'DOWNLOAD_FAILED',
      details: 'the stream names an address that is not allowed',
    });
  } finally {
    connects.stop();
  }
  // Local sockets are those of a Redis that another file of this process used.
  expect(connects.attempts.filter((at) => !at.startsWith('/'))).toEqual([]);
});

it('a segment that is nothing but headers ends with its error, without all of them in memory', async () => {
  const box = Buffer.alloc(MIB);
  box.writeUInt32BE(MIB);
  box.write('ftyp', 4);
  box.write('isom', 8);
  web.texts.set('headers.mp4', Buffer.concat(Array.from({ length: 20 }, () => box)));
  web.texts.set('headers.m3u8', playlist('#EXTINF:2,', '/headers.mp4'));
  await expect(extract(around, web.url('headers.m3u8'), { format: 'mp3' })).rejects.toMatchObject({
    code: 'INVALID_VIDEO',
    details: expect.stringContaining('a segment of the stream is not readable fragmented MP4'),
  });
  expect(around.left()).toEqual([]);
});

it('a presentation that begins in a thousand hours is longer than allowed', async () => {
  const sound = ['-f', 'lavfi', '-i', 'sine=d=2', '-c:a', 'aac', '-f', 'dash', '-single_file', '1'];
  await placeStream(folder, 'far', (place) => [...sound, `${place}/index.mpd`]);
  for (const [name, base] of Object.entries({
    file: '',
    offset: '<SegmentBase presentationTimeOffset="1"/>',
  })) {
    web.texts.set(
      `far/${name}.mpd`,
      `<MPD type="static"><Period start="PT1000H" duration="PT9S"><AdaptationSet contentType="audio"><Representation><BaseURL>index-stream0.mp4</BaseURL>${base}</Representation></AdaptationSet></Period></MPD>`,
    );
    await expect(extract(around, web.url(`far/${name}.mpd`), { format: 'mp3' })).rejects.toMatchObject({
      code: 'INVALID_VIDEO',
      details: 'the audio is longer than 3600 s',
    });
  }
});
