/** Where strangers' descriptions are read, what of, and what ends a piece of work that is too much. */
import { writeFile } from 'node:fs/promises';
import { mediaFolder } from 'soundpost-testing/sources';
import { turnsDuring } from 'soundpost-testing/turns-during';
import { afterEach, expect, it } from 'vitest';
import { Reader, readApart, readFileApart, readSourceApart } from '../../src/reading/reader.ts';
import { readAudioIndex } from '../../src/sparse/mp4/audio-index.ts';
import { unpacked } from '../../src/streams/presentation.ts';
import { examine } from '../../src/streams/segments/examine-apart.ts';
import { inMemory, sourceOf } from '../sparse/byte-source.ts';
import { box, FTYP, mdat, plainTables, trak } from '../sparse/mp4-boxes.ts';
import { fragment, header } from '../streams/fmp4.ts';

const folder = mediaFolder();
const URL = 'http://cdn.example/stream.m3u8';
const { signal } = new AbortController();

/** Of each piece of work that the other process has done: its processor time. */
const charged: number[] = [];
const reading = { signal, charge: (seconds: number) => charged.push(seconds) };

let own: Reader | undefined;
afterEach(() => {
  own?.close();
  own = undefined;
  charged.length = 0;
});

const playlist = (segments: number) =>
  Buffer.from(
    [
      ...[
        '#EXTM3U',
        '#EXT-X-TARGETDURATION:2',
        '#EXT-X-MAP:URI="init.mp4"',
        '#EXT-X-KEY:METHOD=AES-128,URI="k"',
      ],
      ...Array.from({ length: segments }, (_, nth) => `#EXTINF:2,\n${nth}.mp4`),
      '#EXT-X-ENDLIST',
    ].join('\n'),
  );

const master = (renditions: number) =>
  Buffer.from(
    [
      '#EXTM3U',
      ...Array.from(
        { length: renditions },
        (_, nth) => `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${nth}",URI="${nth}.m3u8"`,
      ),
      '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"',
      'pictures.m3u8',
    ].join('\n'),
  );

/** In a file, as it was downloaded. */
async function onDisk(bytes: Buffer): Promise<{ path: string; url: string }> {
  const path = folder.at(crypto.randomUUID());
  await writeFile(path, bytes);
  return { path, url: URL };
}

async function read(bytes: Buffer, reader?: Reader) {
  const input = await onDisk(bytes);
  return unpacked(
    reader === undefined
      ? await readApart('playlist', input, bytes.length, reading)
      : await reader.run('playlist', input, reading),
  );
}

it('up to 64 KiB is read in place, more in the other process, with the same answer', async () => {
  const [small, large] = [playlist(100), playlist(10_000)];
  const here = await read(small);
  expect(charged).toEqual([]);
  own = new Reader();
  expect(await read(small, own)).toEqual(here);
  expect(charged).toHaveLength(1);
  const { segments } = await read(large);
  expect(charged).toHaveLength(2);
  expect(segments).toHaveLength(10_000);
  expect(segments.slice(0, 100)).toEqual(here.segments);
  // What they share is one object there, and one for 500 here.
  expect(new Set(segments.map(({ init }) => init)).size).toBe(20);
});

it.each(['missingEnd', 'encryptedStreams', 'plainFile'] as const)(
  '%s of a file of few boxes is found in place, of 99,999 small ones in the other process',
  async (kind) => {
    const free = box('free');
    for (const [boxes, pieces] of [[3, 0] as const, [99_999, 1] as const]) {
      const bytes = Buffer.concat([FTYP, ...Array.from({ length: boxes }, () => free)]);
      const { path } = await onDisk(bytes);
      await readFileApart(kind, { path, demuxer: 'mov', sizeBytes: bytes.length }, reading);
      expect(charged).toHaveLength(pieces);
    }
  },
);

it('a segment above 64 KiB is examined in the other process, with the same answer', async () => {
  const answers = [];
  for (const [padBytes, pieces] of [[0, 0] as const, [64 * 1024, 1] as const]) {
    const { path } = await onDisk(Buffer.concat([fragment, box('free', Buffer.alloc(padBytes))]));
    const { heldSeconds, startSeconds, isWhole } = await examine(path, async () => header(1), reading);
    expect(charged).toHaveLength(pieces);
    answers.push({ heldSeconds, startSeconds, isWhole });
  }
  expect(answers[1]).toEqual(answers[0]);
  expect(answers[0]?.heldSeconds).toBeGreaterThan(0);
});

it('of 70,000 renditions and 8 outputs one piece of work is made, and the first 64 are offered', async () => {
  const bytes = master(70_000);
  const asked = [undefined, 0, 1, 2, 3, 63, 64, 'en'];
  const { held, ...opened } = await readApart(
    'description',
    { kind: 'hls', ...(await onDisk(bytes)), asked },
    bytes.length,
    reading,
  );
  expect(charged).toHaveLength(1);
  expect(opened).toEqual({
    next: {
      url: 'http://cdn.example/0.m3u8',
      isTrack: true,
      picturesUrl: 'http://cdn.example/pictures.m3u8',
    },
  });
  expect(held.slice(0, 6)).toEqual([true, true, false, false, false, false]);
  expect(held.slice(6)).toMatchObject([
    { code: 'EXTRACTION_FAILED', details: expect.stringMatching(/^no audio track 64; the stream has 0: /) },
    { details: expect.stringMatching(/^no audio track en;/) },
  ]);
});

it('what comes from there is put together in turns with other work', async () => {
  const input = await onDisk(playlist(10_000));
  const packed = await readApart('playlist', input, 1_000_000, reading);
  expect(await turnsDuring(() => unpacked(packed))).toBeGreaterThanOrEqual(20);
});

it('a failure is the same from there', async () => {
  const live = Buffer.from(playlist(9_000).toString().replace('#EXT-X-ENDLIST', ''));
  await expect(read(live)).rejects.toMatchObject({ code: 'EXTRACTION_FAILED', details: 'live stream' });
});

it.each([
  ['time', { processorSeconds: 0.01, memoryBytes: Number.POSITIVE_INFINITY }],
  ['memory', { processorSeconds: 60, memoryBytes: 1 }],
])('work that takes too much %s fails with a sentence, other work goes on', async (what, limits) => {
  own = new Reader(limits);
  const bytes = master(20_000);
  await expect(
    own.run('description', { kind: 'hls', ...(await onDisk(bytes)), asked: [undefined] }, reading),
  ).rejects.toMatchObject({
    code: 'INVALID_VIDEO',
    details: `the description of the file or stream needs too much ${what} to read; convert the file first`,
  });
  expect(own.pid).toBeUndefined();
  expect((await read(playlist(10_000))).segments).toHaveLength(10_000);
});

it('a process that was killed is started again, and the work that it had is done', async () => {
  own = new Reader();
  await read(playlist(10_000), own);
  const { pid = 0 } = own;
  const underway = [read(playlist(10_000), own), read(playlist(9_000), own)];
  process.kill(pid, 'SIGKILL');
  const done = await Promise.all(underway);
  expect(done.map(({ segments }) => segments.length)).toEqual([10_000, 9_000]);
  expect(own.pid).not.toBe(pid);
});

// A source that is read here, for a reader there.

/** Its header has 120 KiB: 10,000 chunks with a sample each, on the first half of the file. */
function film(): Buffer {
  const tables = (first: number) =>
    plainTables(Array.from({ length: 10_000 }, (_, nth) => 200_000 + first + 200 * nth));
  const moov = box(
    'moov',
    trak({ handler: 'soun', format: 'mp4a', id: 1, tables: tables(0) }),
    trak({ handler: 'vide', format: 'avc1', id: 2, tables: tables(100) }),
  );
  return Buffer.concat([FTYP, moov, mdat(4_000_000)]);
}

it('a large header of a film is read there, and the bytes that it names are the same', async () => {
  const index = await readAudioIndex(inMemory(film()));
  const { lead, tracks } = await readSourceApart('movieParts', inMemory(film()), reading);
  // One answer for each time that it asks for bytes, and the last.
  expect(charged.length).toBeGreaterThan(2);
  expect(lead).toEqual(index.lead);
  expect(tracks).toEqual([index.track(0)]);
});

it('what the source throws is thrown', async () => {
  const bytes = film();
  const broken = new Error('the link is gone');
  const source = sourceOf(bytes.length, async (start, end) => {
    if (end - start > 100_000) throw broken;
    return bytes.subarray(start, end);
  });
  await expect(readSourceApart('movieParts', source, reading)).rejects.toBe(broken);
  expect((await read(playlist(10_000))).segments).toHaveLength(10_000);
});

it('work that nobody waits for any more ends with the reason', async () => {
  const stop = new AbortController();
  const reason = new Error('the job was cancelled');
  const source = sourceOf(4_000_000, async () => {
    stop.abort(reason);
    return new Promise(() => {});
  });
  own = new Reader();
  await expect(own.run('movieParts', undefined, { signal: stop.signal }, source)).rejects.toBe(reason);
  expect((await read(playlist(10_000), own)).segments).toHaveLength(10_000);
});
