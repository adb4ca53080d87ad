/** Where an audio track lies in an MP4 file; and that a file which is not laid out as expected is left to be read whole. */
import { open } from 'node:fs/promises';
import fc from 'fast-check';
import { bytesOf } from 'soundpost-outbound/ranges-spans';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { packetsOf } from 'soundpost-testing/oracle';
import { describe, expect, it } from 'vitest';
import { type AudioIndex, readAudioIndex } from '../../src/sparse/mp4/audio-index.ts';
import { UnsupportedLayout } from '../../src/sparse/mp4/boxes.ts';
import { inMemory, onDisk, pairs, sourceOf } from './byte-source.ts';
import {
  box,
  co64,
  FTYP,
  longs,
  mdat,
  plainTables,
  stco,
  stsc,
  stsz,
  stts,
  stz2,
  type TrackBoxes,
  trak,
  words,
} from './mp4-boxes.ts';

const AUDIO = { handler: 'soun', format: 'mp4a' };
const film = (...tracks: readonly TrackBoxes[]) =>
  Buffer.concat([FTYP, mdat(4000), box('moov', ...tracks.map(trak))]);

describe('a track of a file from a real muxer', () => {
  const pictures = () => {
    const noise = 'testsrc2=s=320x180:r=25:d=3,noise=alls=80:allf=t';
    return cachedMedia('pictures.mp4', [
      '-f',
      'lavfi',
      '-i',
      noise,
      '-c:v',
      'mpeg4',
      '-qscale:v',
      '1',
      '-g',
      '25',
    ]);
  };
  const pcm = () => cachedMedia('pcm.wav', ['-f', 'lavfi', '-i', 'anoisesrc=r=48000:d=6:a=0.4', '-ac', '2']);

  const rows = [
    ['aac.mp4', ['-c:a', 'aac'], false],
    ['front.mp4', ['-c:a', 'aac', '-movflags', '+faststart'], false],
    ['pcm.mov', ['-c:a', 'pcm_s24le'], true],
    ['mp3.mp4', ['-c:a', 'libmp3lame'], false],
    ['opus.mp4', ['-c:a', 'libopus'], false],
    ['ac3.mov', ['-c:a', 'ac3'], false],
    ['alac.mov', ['-c:a', 'alac'], false],
    ['adpcm.mov', ['-c:a', 'adpcm_ima_qt'], true],
    ['ulaw.mov', ['-c:a', 'pcm_mulaw'], true],
  ] as const;

  it.each(rowsOfRun(rows, 3))(
    '%s: is covered, and hardly more than that',
    async (name, codec, countsFrames) => {
      const inputs = ['-stream_loop', '1', '-i', await pictures(), '-i', await pcm()];
      const path = await cachedMedia(name, [...inputs, '-c:v', 'copy', ...codec]);
      await using file = await open(path);
      const index = await readAudioIndex(await onDisk(file));
      const spans = pairs(index.track(0));
      const packets = await packetsOf(path);
      const isCovered = ({ at, bytes }: { at: number; bytes: number }) =>
        spans.some(([start, end]) => start <= at && at + bytes <= end);
      expect(packets.length).toBeGreaterThan(50);
      expect(packets.filter((packet) => !isCovered(packet))).toEqual([]);
      const packetBytes = packets.reduce((sum, { bytes }) => sum + bytes, 0);
      // Frames of sound are counted in the table, not their bytes: a chunk goes up to whatever comes next.
      expect(bytesOf(index.track(0))).toBeLessThanOrEqual(countsFrames ? packetBytes * 1.1 : packetBytes);
    },
  );
});

interface Chunk {
  readonly gap: number;
  readonly sizes: readonly number[];
}

/** Where chunks come to lie one after another, and the stretches that they are together. */
function laidOut(chunks: readonly Chunk[]): {
  offsets: number[];
  runs: number[];
  expected: [number, number][];
} {
  let at = FTYP.length + 8;
  const expected: [number, number][] = [];
  const offsets: number[] = [];
  const runs: number[] = [];
  for (const [nth, { gap, sizes }] of chunks.entries()) {
    at += gap;
    offsets.push(at);
    if (sizes.length !== chunks[nth - 1]?.sizes.length) runs.push(nth + 1, sizes.length, 1);
    const end = at + sizes.reduce((sum, size) => sum + size, 0);
    const last = expected.at(-1);
    if (last?.[1] === at) last[1] = end;
    else if (end > at) expected.push([at, end]);
    at = end;
  }
  return { offsets, runs, expected };
}

describe.runIf(currentRun === 'core')('any tables', () => {
  const layout = fc.array(
    fc.record({
      gap: fc.integer({ min: 0, max: 50 }),
      sizes: fc.array(fc.integer({ min: 0, max: 15 }), { minLength: 1, maxLength: 6 }),
    }),
    { minLength: 1, maxLength: 30 },
  );

  it.each([
    ['stsz', (sizes: number[]) => stsz(...sizes)],
    ['stz2 of 4 bits', (sizes: number[]) => stz2(4, ...sizes)],
    ['stz2 of 8 bits', (sizes: number[]) => stz2(8, ...sizes)],
    ['stz2 of 16 bits', (sizes: number[]) => stz2(16, ...sizes)],
  ])('give the bytes that the chunks have: %s', async (_name, sizeBox) => {
    await fc.assert(
      fc.asyncProperty(layout, fc.boolean(), async (chunks, isLarge) => {
        const { offsets, runs, expected } = laidOut(chunks);
        const sizes = chunks.flatMap((chunk) => chunk.sizes);
        const tables = [
          stts(sizes.length),
          stsc(...runs),
          sizeBox(sizes),
          (isLarge ? co64 : stco)(...offsets),
        ];
        const index = await readAudioIndex(inMemory(film({ ...AUDIO, tables })));
        expect(pairs(index.track(0))).toEqual(expected);
      }),
    );
  });
});

describe.runIf(currentRun === 'core')('tables that count frames of sound', () => {
  it('give each chunk up to whatever comes next, for they do not know sizes', async () => {
    // As QuickTime writes uncompressed sound: samples of one byte that last a tick each.
    const ofFrames = (...offsets: readonly number[]) => [
      ...[stts(offsets.length * 10, 1), stsc(1, 10, 1)],
      ...[box('stsz', words(0, 1, offsets.length * 10)), stco(...offsets)],
    ];
    const pictures = { handler: 'vide', format: 'avc1', id: 2, tables: plainTables([150, 1000]) };
    const index = await readAudioIndex(
      inMemory(film({ ...AUDIO, tables: ofFrames(100, 300, 2000) }, pictures)),
    );
    expect(pairs(index.track(0))).toEqual([
      [100, 150],
      [300, 1000],
      [2000, FTYP.length + 8 + 4000],
    ]);
  });
});

describe.runIf(currentRun === 'core')('a 64-bit layout', () => {
  it('is found behind 5 GiB of pictures', async () => {
    const GIB5 = 5 * 1024 ** 3;
    const large = Buffer.concat([words(1), Buffer.from('mdat'), longs(GIB5)]);
    const moov = box(
      'moov',
      trak({ ...AUDIO, tables: [stts(1), stsc(1, 1, 1), stsz(700), co64(GIB5 - 1000)] }),
    );
    const parts: readonly [number, Buffer][] = [
      [0, Buffer.concat([FTYP, large])],
      [FTYP.length + GIB5, moov],
    ];
    const read = async (start: number, end: number): Promise<Uint8Array> => {
      const bytes = Buffer.alloc(end - start);
      for (const [at, part] of parts) {
        if (at < end && at + part.length > start)
          part.copy(bytes, Math.max(0, at - start), Math.max(0, start - at));
      }
      return bytes;
    };
    const index = await readAudioIndex(sourceOf(FTYP.length + GIB5 + moov.length, read));
    expect(pairs(index.track(0))).toEqual([[GIB5 - 1000, GIB5 - 300]]);
  });
});

describe.runIf(currentRun === 'core')('before a track is chosen', () => {
  it('the beginnings of all tracks are wanted, and chapters whole', async () => {
    const many = Array.from({ length: 100 }, (_, nth) => 100 + nth * 10);
    const small = (offsets: readonly number[]) => [
      ...[stts(offsets.length), stsc(1, 1, 1)],
      ...[stsz(...offsets.map(() => 10)), stco(...offsets)],
    ];
    const file = film(
      { ...AUDIO, id: 1, tables: small(many), others: [box('tref', box('chap', words(2)))] },
      { handler: 'text', format: 'text', id: 2, tables: small(many.map((at) => at + 1000)) },
    );
    const { lead } = await readAudioIndex(inMemory(file));
    expect(pairs(lead)).toEqual([
      [100, 100 + 64 * 10],
      [1100, 2100],
    ]);
  });
});

/** What sends a file to be downloaded whole, and why it is not understood. */
const ODD: readonly [string, () => Buffer, string][] = [
  ['no MP4', () => Buffer.from('RIFF....WAVE and so on'), 'no MP4 or MOV file'],
  ['no movie box', () => Buffer.concat([FTYP, mdat(100)]), 'no movie box'],
  ['two movie boxes', () => Buffer.concat([film(), box('moov')]), 'two movie boxes'],
  ['no sound', () => film({ handler: 'vide', format: 'avc1', tables: plainTables([100]) }), 'no audio track'],
  [
    'nothing but sound',
    () => film({ ...AUDIO, tables: [stts(1), stsc(1, 1, 1), stsz(4000), stco(40)] }),
    'hardly anything but sound',
  ],
  [
    'a truncated file',
    () => film({ ...AUDIO, tables: plainTables([100]) }).subarray(0, -1),
    'beyond the end',
  ],
  ['a header that breaks off', () => Buffer.concat([film(), Buffer.from('abc')]), 'breaks off in its header'],
  ['a box smaller than its header', () => Buffer.concat([FTYP, words(4), Buffer.from('moov')]), 'of 4 bytes'],
  [
    'a 64-bit size that is none',
    () => Buffer.concat([FTYP, words(1), Buffer.from('mdat'), longs(3)]),
    'of 3 bytes',
  ],
  [
    'boxes without an end',
    () => Buffer.concat([FTYP, ...Array(100).fill(box('free'))]),
    'more than 64 boxes',
  ],
  [
    'a movie box of 33 MiB',
    () => Buffer.concat([FTYP, box('moov', Buffer.alloc(33 << 20))]),
    'a box moov of',
  ],
  [
    'a box that overflows its parent',
    () => Buffer.concat([FTYP, box('moov', words(100), Buffer.from('trak'))]),
    'does not fit',
  ],
  ['65 tracks', () => film(...Array(65).fill({ ...AUDIO, tables: plainTables([100]) })), '65 tracks'],
  ['fragments that nothing announces', () => Buffer.concat([FTYP, box('moof')]), 'no movie box announces'],
  ['a packed movie box', () => Buffer.concat([FTYP, box('moov', box('cmov'))]), 'cmov'],
  [
    'encrypted sound',
    () => film({ ...AUDIO, format: 'enca', tables: plainTables([100]) }),
    'encrypted: enca',
  ],
  [
    'encrypted pictures',
    () => film({ handler: 'vide', format: 'encv', tables: plainTables([100]) }),
    'encrypted: encv',
  ],
  ['no sizes', () => film({ ...AUDIO, tables: [stts(1), stsc(1, 1, 1), stco(100)] }), 'no box stsz or stz2'],
  ['sizes twice', () => film({ ...AUDIO, tables: [...plainTables([100]), stsz(100)] }), '2 times'],
  [
    'more sizes than the box holds',
    () => film({ ...AUDIO, tables: [stts(1), stsc(1, 1, 1), box('stsz', words(0, 0, 9, 1)), stco(100)] }),
    'does not hold its 9 rows',
  ],
  [
    'gigantic tables',
    () =>
      film({ ...AUDIO, tables: [stts(1), stsc(1, 1, 1), box('stsz', words(0, 0, 0xffffffff)), stco(100)] }),
    '4294967295 rows',
  ],
  [
    'a constant size for four thousand million samples',
    () =>
      film({
        ...AUDIO,
        tables: [stts(1), stsc(1, 0xffffffff, 1), box('stsz', words(0, 9, 0xffffffff)), stco(100)],
      }),
    'rows',
  ],
  [
    'sizes of 5 bits',
    () =>
      film({
        ...AUDIO,
        tables: [stts(1), stsc(1, 1, 1), box('stz2', words(0, 5, 1), Buffer.alloc(4)), stco(100)],
      }),
    'of 5 bits',
  ],
  [
    'a sample of 2 GiB',
    () =>
      film({ ...AUDIO, tables: [stts(1), stsc(1, 1, 1), box('stsz', words(0, 0x7fffffff, 1)), stco(100)] }),
    'samples of 2147483647 bytes',
  ],
  [
    'runs that begin in the middle',
    () => film({ ...AUDIO, tables: [stts(1), stsc(2, 1, 1), stsz(100), stco(100)] }),
    'chunks of no run',
  ],
  [
    'runs out of order',
    () => film({ ...AUDIO, tables: [stts(3), stsc(1, 1, 1, 1, 1, 1), stsz(1, 1, 1), stco(100, 200, 300)] }),
    'out of order',
  ],
  [
    'chunks without samples',
    () => film({ ...AUDIO, tables: [stts(1), stsc(1, 0, 1), stsz(100), stco(100)] }),
    'out of order',
  ],
  [
    'samples in no chunk',
    () => film({ ...AUDIO, tables: [stts(2), stsc(1, 1, 1), stsz(1, 1), stco(100)] }),
    '2 samples, 1 of them',
  ],
  [
    'a chunk beyond the end',
    () => film({ ...AUDIO, tables: plainTables([100, 1_000_000]) }),
    'outside of the file',
  ],
  [
    'the last of many chunks beyond the end',
    () =>
      film({
        ...AUDIO,
        tables: plainTables([...Array.from({ length: 99 }, (_, nth) => 100 * nth), 1_000_000]),
      }),
    'outside of the file',
  ],
  [
    'a chunk far beyond the end',
    () => film({ ...AUDIO, tables: [stts(1), stsc(1, 1, 1), stsz(9), co64(2 ** 60)] }),
    'outside of the file',
  ],
  ['chunks over one another', () => film({ ...AUDIO, tables: plainTables([100, 150]) }), 'overlap'],
  [
    'chapters of 9 MiB',
    () =>
      Buffer.concat([
        film(
          { ...AUDIO, tables: plainTables([100]), others: [box('tref', box('chap', words(7)))] },
          {
            handler: 'vide',
            format: 'jpeg',
            id: 7,
            tables: [stts(1), stsc(1, 1, 1), stsz(9 << 20), stco(100)],
          },
        ),
        box('free', Buffer.alloc(9 << 20)),
      ]),
    'large chapters',
  ],
];

describe('what is not understood is left alone', () => {
  async function readAll(file: Buffer): Promise<void> {
    const index: AudioIndex = await readAudioIndex(inMemory(file));
    for (let place = 0; place < index.audioTracks; place += 1) index.track(place);
  }

  it.runIf(currentRun === 'core').each(ODD)('%s', async (_name, make, why) => {
    const error: unknown = await readAll(make()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnsupportedLayout);
    expect((error as UnsupportedLayout).message).toContain(why);
  });

  it.runIf(currentRun === 'all')(
    'a file with any of its bytes changed, without another error and without bytes outside of it',
    async () => {
      const tables = [stts(6), stsc(1, 2, 1, 3, 1, 1), stsz(9, 8, 7, 6, 5, 4), stco(100, 200, 300, 400)];
      const file = film(
        { ...AUDIO, tables },
        { handler: 'vide', format: 'avc1', id: 2, tables: plainTables([500]) },
      );
      const change = fc.record({ at: fc.nat(file.length - 1), to: fc.nat(255) });
      await fc.assert(
        fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async (changes) => {
          const changed = Buffer.from(file);
          for (const { at, to } of changes) changed[at] = to;
          try {
            const index = await readAudioIndex(inMemory(changed));
            const all = [
              index.lead,
              ...Array.from({ length: index.audioTracks }, (_, place) => index.track(place)),
            ];
            const ends = all.flatMap((spans) => [...spans.ends]);
            expect(Math.max(0, ...ends)).toBeLessThanOrEqual(file.length);
          } catch (error) {
            expect(error).toBeInstanceOf(UnsupportedLayout);
          }
        }),
        { numRuns: 3000 },
      );
    },
  );
});
