/** Where an audio track lies in a fragmented MP4 file, how it is found, and what is left to be read whole. */
import { open } from 'node:fs/promises';
import fc from 'fast-check';
import { bytesOf } from 'soundpost-outbound/ranges-spans';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { packetsOf } from 'soundpost-testing/oracle';
import { describe, expect, it } from 'vitest';
import { type AudioIndex, readAudioIndex } from '../../src/sparse/mp4/audio-index.ts';
import { UnsupportedLayout } from '../../src/sparse/mp4/boxes.ts';
import { expectOddOrInside } from '../changed-files.ts';
import { inMemory, onDisk, pairs } from './byte-source.ts';
import { box, longs, mdat, plainTables, words } from './mp4-boxes.ts';
import {
  AUDIO,
  announced,
  fragment,
  mfra,
  NO_SAMPLES,
  PICTURES,
  sidx,
  signed,
  tfhd,
  traf,
  trex,
  trun,
} from './mp4-fragment-boxes.ts';

describe('a track of a fragmented file from a real muxer', () => {
  /** Encoded once: what differs is the muxer's. Three seconds of pictures come eight times. */
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
  const pcm = () => cachedMedia('pcm.wav', ['-f', 'lavfi', '-i', 'anoisesrc=r=48000:d=24:a=0.4', '-ac', '2']);
  const sounds = {
    aac: async () => cachedMedia('aac.mp4', ['-i', await pcm(), '-c:a', 'aac']),
    opus: async () => cachedMedia('opus.mp4', ['-i', await pcm(), '-c:a', 'libopus']),
    pcm,
  };

  const rows = [
    ['tables at the end', 'mp4', 'aac', 'frag_keyframe+empty_moov', 5],
    ['one track following the other', 'mp4', 'aac', 'frag_keyframe+empty_moov+omit_tfhd_offset', 5],
    ['an index in front', 'mp4', 'aac', 'frag_keyframe+empty_moov+default_base_moof+global_sidx', 3],
    ['DASH, an index for each fragment', 'mp4', 'aac', 'frag_keyframe+dash', 6],
    ['no index at all', 'mp4', 'aac', 'frag_keyframe+empty_moov+default_base_moof+skip_trailer', 60],
    ['a movie box with the first samples', 'mp4', 'aac', 'frag_keyframe', 5],
    ['the same, counted from the fragment', 'mp4', 'aac', 'frag_keyframe+empty_moov+default_base_moof', 5],
    ['a fragment for each track', 'mp4', 'aac', 'frag_keyframe+empty_moov+separate_moof', 5],
    ['DASH, an index in front', 'mp4', 'aac', 'frag_keyframe+dash+global_sidx', 3],
    ['CMAF', 'mp4', 'aac', 'frag_keyframe+cmaf', 5],
    ['a movie box that came late', 'mp4', 'aac', 'frag_keyframe+delay_moov', 5],
    ['a fragment for each picture', 'mp4', 'aac', 'frag_every_frame+empty_moov+default_base_moof', 5],
    ['Opus', 'mp4', 'opus', 'frag_keyframe+empty_moov', 5],
    ['uncompressed sound', 'mov', 'pcm', 'frag_keyframe+empty_moov', 5],
  ] as const;

  it.each(rowsOfRun(rows, 6))('%s: is covered, and no more than that', async (...row) => {
    const [what, extension, sound, flags, mostRounds] = row;
    const inputs = ['-stream_loop', '7', '-i', await pictures(), '-i', await sounds[sound]()];
    const path = await cachedMedia(`${what.replaceAll(/\W/g, '-')}.${extension}`, [
      ...[...inputs, '-c', 'copy', '-movflags', `+${flags}`],
    ]);
    await using file = await open(path);
    const source = await onDisk(file, 10_000);
    const index = await readAudioIndex(source);
    const spans = pairs(index.track(0));
    const packets = await packetsOf(path);
    const isCovered = ({ at, bytes }: { at: number; bytes: number }) =>
      spans.some(([start, end]) => start <= at && at + bytes <= end);
    expect(packets.length).toBeGreaterThan(200);
    expect(packets.filter((packet) => !isCovered(packet))).toEqual([]);
    expect(bytesOf(index.track(0))).toBe(packets.reduce((sum, { bytes }) => sum + bytes, 0));
    expect(source.rounds.length).toBeLessThanOrEqual(mostRounds);
    expect(source.readBytes).toBeLessThan(source.sizeBytes / 10);
  });
});

interface Run {
  readonly gap: number;
  readonly sizes: readonly number[];
}

/** One fragment of sound, its runs laid out with gaps, as each way of saying so has it. */
const WAYS: readonly [string, (moofAt: number, mdatAt: number, runs: readonly Run[]) => Buffer][] = [
  ['counted from the fragment', (moofAt, mdatAt, runs) => runsFrom(tfhd(1), moofAt, mdatAt, runs)],
  ['counted from a place', (_, mdatAt, runs) => runsFrom(tfhd(1, 1, longs(50)), 50, mdatAt, runs)],
  [
    'counted backwards from a place, with other fields before and in the runs',
    (_, mdatAt, runs) => {
      const header = tfhd(1, 0x2b, longs(mdatAt + 9999), words(1, 1024, 0));
      const boxes = placed(mdatAt, runs).map(([at, { sizes }]) =>
        box(
          'trun',
          words(0xf05, sizes.length),
          signed(at - mdatAt - 9999),
          words(7, ...sizes.flatMap((size, nth) => [1024, size, nth, 2])),
        ),
      );
      return box('moof', traf(header, ...boxes));
    },
  ],
];

function placed(from: number, runs: readonly Run[]): [number, Run][] {
  let at = from;
  return runs.map((run) => {
    const start = at + run.gap;
    at = start + run.sizes.reduce((sum, size) => sum + size, 0);
    return [start, run];
  });
}

function runsFrom(header: Buffer, base: number, mdatAt: number, runs: readonly Run[]): Buffer {
  const boxes = placed(mdatAt, runs).map(([at, { sizes }]) => trun(at - base, ...sizes));
  return box('moof', traf(header, ...boxes));
}

describe.runIf(currentRun === 'core')('any runs', () => {
  const layout = fc.array(
    fc.record({
      gap: fc.integer({ min: 0, max: 50 }),
      sizes: fc.array(fc.integer({ min: 0, max: 15 }), { maxLength: 6 }),
    }),
    { minLength: 1, maxLength: 20 },
  );

  it.each(WAYS)('give the bytes that the samples have: %s', async (_name, make) => {
    await fc.assert(
      fc.asyncProperty(fc.array(layout, { minLength: 1, maxLength: 4 }), async (fragments) => {
        const parts = [announced()];
        let at = parts[0]?.length ?? 0;
        const expected: [number, number][] = [];
        for (const runs of fragments) {
          const moofBytes = make(at, 0, runs).length;
          const from = at + moofBytes + 8;
          for (const [start, { sizes }] of placed(from, runs)) {
            const end = start + sizes.reduce((sum, size) => sum + size, 0);
            const last = expected.at(-1);
            if (last?.[1] === start) last[1] = end;
            else if (end > start) expected.push([start, end]);
          }
          parts.push(make(at, from, runs), mdat(3000));
          at = from + 3000;
        }
        const index = await readAudioIndex(inMemory(Buffer.concat(parts)));
        expect(pairs(index.track(0))).toEqual(expected);
      }),
    );
  });

  it('of tracks that follow one another without a word, with sizes by the header or the movie box', async () => {
    const movie = announced(undefined, [trex(1, 30), trex(2, 200)]);
    const run = (samples: number) => box('trun', words(0, samples));
    const moof = box(
      'moof',
      // Where nothing else is said the first one begins where its fragment does.
      traf(tfhd(2, 0), box('trun', words(1, 2, 400))),
      traf(tfhd(1, 0), run(3)),
      traf(tfhd(1, 0x10, words(7)), run(4)),
    );
    const index = await readAudioIndex(inMemory(Buffer.concat([movie, moof, mdat(2000)])));
    const from = movie.length + 800;
    expect(pairs(index.track(0))).toEqual([[from, from + 90 + 28]]);
  });

  it('behind samples of the movie box, whose beginning is that of the track', async () => {
    const samples = plainTables(Array.from({ length: 60 }, (_, nth) => 3000 + nth * 200));
    const movie = announced([{ ...AUDIO, tables: samples }, PICTURES]);
    const sound = fragment(400, Array<number>(10).fill(50));
    const at = movie.length + sound.length - 500;
    const index = await readAudioIndex(inMemory(Buffer.concat([movie, sound, mdat(20_000)])));
    const all = [
      ...Array.from({ length: 60 }, (_, nth) => [3000 + nth * 200, 3100 + nth * 200]),
      [at, at + 500],
    ].sort(([a = 0], [b = 0]) => a - b);
    expect(pairs(index.track(0))).toEqual(all);
    // 60 of the movie box and four of the fragment; besides them the picture.
    expect(bytesOf(index.lead)).toBe(60 * 100 + 4 * 50 + 400);
  });
});

/** Fragments of 100 KB of which 5 KB are sound. */
const FRAGMENTS = Array.from({ length: 40 }, () => fragment(95_000, [2000, 3000]));
const LENGTHS = FRAGMENTS.map(({ length }) => length);
const SOUND_BYTES = 40 * 5000;
const startsFrom = (at: number) =>
  LENGTHS.map((_, nth) => at + LENGTHS.slice(0, nth).reduce((a, b) => a + b, 0));
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

describe.runIf(currentRun === 'core')('indexes', () => {
  const movie = announced();

  const indexes: readonly [string, () => Buffer[], number][] = [
    ['a segment index', () => [movie, sidx(LENGTHS.map((bytes) => [bytes])), ...FRAGMENTS], 2],
    [
      'a segment index of 64 bits, and something before what it lists',
      () => [
        movie,
        sidx(
          LENGTHS.map((bytes) => [bytes]),
          { version: 1, gap: 108 },
        ),
        box('free', Buffer.alloc(100)),
        ...FRAGMENTS,
      ],
      2,
    ],
    [
      'an index of indexes',
      () => {
        const groups = [0, 10, 20, 30].map((from) => {
          const own = sidx(LENGTHS.slice(from, from + 10).map((bytes) => [bytes]));
          return Buffer.concat([own, ...FRAGMENTS.slice(from, from + 10)]);
        });
        return [movie, sidx(groups.map(({ length }) => [length, true])), ...groups];
      },
      3,
    ],
    [
      'an index that lists fragments and then an index of the rest',
      () => {
        const rest = Buffer.concat([sidx(LENGTHS.slice(5).map((bytes) => [bytes])), ...FRAGMENTS.slice(5)]);
        const first = LENGTHS.slice(0, 5).map((bytes): [number] => [bytes]);
        return [movie, sidx([...first, [rest.length, true]]), ...FRAGMENTS.slice(0, 5), rest];
      },
      3,
    ],
    ['tables at the end', () => [movie, ...FRAGMENTS, mfra(startsFrom(movie.length))], 3],
    [
      'tables at the end of 64 bits, of every second fragment',
      () => {
        const places = startsFrom(movie.length).filter((_, nth) => nth % 2 === 0);
        return [movie, ...FRAGMENTS, mfra(places, { version: 1 })];
      },
      4,
    ],
    ['none, from one fragment to the next', () => [movie, ...FRAGMENTS], 40],
  ];

  it.each(indexes)('%s: everything is found in few rounds', async (_name, make, rounds) => {
    const source = inMemory(Buffer.concat(make()));
    const index = await readAudioIndex(source);
    expect(bytesOf(index.track(0))).toBe(SOUND_BYTES);
    expect(source.rounds.length).toBe(rounds);
    expect(source.readBytes).toBeLessThan(300_000);
  });

  it('how large fragment boxes are is learnt from the first one', async () => {
    const parts = Array.from({ length: 9 }, () => fragment(300_000, Array<number>(1000).fill(10)));
    const source = inMemory(Buffer.concat([movie, sidx(parts.map(({ length }) => [length])), ...parts]));
    const index = await readAudioIndex(source);
    expect(bytesOf(index.track(0))).toBe(9 * 10_000);
    // All others with the end of the file.
    expect(source.rounds).toEqual([1, 9]);
  });

  it('large fragment boxes are read in a second step, by their size', async () => {
    const large = (seed: number) => fragment(900_000, Array<number>(3000 + seed).fill(10));
    const parts = [FRAGMENTS[0] ?? Buffer.alloc(0), ...[0, 1, 2, 3].map(large)];
    const file = Buffer.concat([movie, sidx(parts.map(({ length }) => [length])), ...parts]);
    const source = inMemory(file);
    const index = await readAudioIndex(source);
    expect(bytesOf(index.track(0))).toBe(5000 + 10 * (3000 + 3001 + 3002 + 3003));
    expect(source.rounds).toEqual([1, 5, 4]);
  });

  it('without one, a walk is given up when the fragments are shorter than a round trip is worth', async () => {
    const file = Buffer.concat([movie, ...FRAGMENTS]);
    await expect(readAudioIndex(inMemory(file, 10_000))).resolves.toBeDefined();
    const far = inMemory(file, 60_000);
    await expect(readAudioIndex(far)).rejects.toThrow('too short to be looked up one by one');
    expect(far.rounds.length).toBeLessThan(12);
  });

  it('what would take as long as the whole file is given up', async () => {
    const file = Buffer.concat([movie, ...FRAGMENTS]);
    const source = { ...inMemory(file), readEach: async () => undefined };
    await expect(readAudioIndex(source)).rejects.toThrow('little would be gained');
  });
});

const [SAMPLE = Buffer.alloc(0)] = FRAGMENTS;
const moofOf = (...boxes: readonly Buffer[]) =>
  Buffer.concat([announced(), box('moof', ...boxes), mdat(5000)]);

/** What sends a fragmented file to be downloaded whole, and why it is not understood. */
const ODD: readonly [string, () => Buffer, string][] = [
  [
    'sound alone',
    () => Buffer.concat([announced([AUDIO], [trex(1)]), fragment(0, [100])]),
    'hardly anything but sound',
  ],
  ['nothing but pictures', () => announced([PICTURES, { ...PICTURES, id: 3 }]), 'no audio track'],
  [
    'encrypted sound',
    () => Buffer.concat([announced([{ ...AUDIO, format: 'enca' }, PICTURES]), SAMPLE]),
    'encrypted: enca',
  ],
  ['an encrypted fragment', () => moofOf(traf(tfhd(1), box('senc', words(0, 0)))), 'encrypted: senc'],
  ['two movie boxes', () => Buffer.concat([announced(), SAMPLE, box('moov')]), 'two movie boxes'],
  ['a fragment cut off', () => Buffer.concat([announced(), SAMPLE.subarray(0, -1)]), 'beyond the end'],
  ['a fragment before the movie box', () => Buffer.concat([SAMPLE, announced()]), 'no movie box announces'],
  [
    'a header cut off',
    () => Buffer.concat([announced(), SAMPLE, Buffer.from('abc')]),
    'breaks off in its header',
  ],
  [
    'tracks of one number',
    () => Buffer.concat([announced([AUDIO, { ...PICTURES, id: 1 }]), SAMPLE]),
    'two tracks of one number',
  ],
  [
    'two words about one track',
    () => Buffer.concat([announced(undefined, [trex(1), trex(1)]), SAMPLE]),
    'two box trex',
  ],
  [
    'no word about a track',
    () => Buffer.concat([announced(undefined, [trex(1)]), SAMPLE]),
    'no box trex for track 2',
  ],
  [
    'a fragment of another track',
    () => Buffer.concat([announced(undefined, [trex(1), trex(9)]), box('moof', traf(tfhd(9)))]),
    'of no track: 9',
  ],
  ['no fragment header', () => moofOf(box('traf', trun(0, 1))), 'no box tfhd'],
  ['two fragment headers', () => moofOf(traf(tfhd(1), tfhd(1))), '2 times'],
  ['a run before its header', () => moofOf(box('traf', trun(0, 1), tfhd(1))), 'a run before its header'],
  ['a header that breaks off', () => moofOf(traf(box('tfhd', words(1, 1)))), 'box tfhd breaks off'],
  [
    'a second run without a place',
    () => moofOf(traf(tfhd(1), trun(100, 5), box('trun', words(0x200, 1, 5)))),
    'does not say where it lies',
  ],
  [
    'a run with more rows than the box holds',
    () => moofOf(traf(tfhd(1), box('trun', words(0x201, 9, 100, 5)))),
    'does not hold its 9 rows',
  ],
  [
    'four thousand million samples of a constant size',
    () => moofOf(traf(tfhd(1), box('trun', words(1, 0xffffffff, 100)))),
    'rows',
  ],
  [
    'many runs of millions of samples',
    () => moofOf(traf(tfhd(1), ...Array<Buffer>(50).fill(box('trun', words(1, 3_000_000, 100))))),
    'more than 4000000 samples',
  ],
  ['a sample of 2 GiB', () => moofOf(traf(tfhd(1), trun(100, 0x7fffffff))), 'a sample of a gigabyte'],
  ['a run before the file', () => moofOf(traf(tfhd(1), trun(-5000, 5))), 'a run outside of the file'],
  ['a run behind the file', () => moofOf(traf(tfhd(1), trun(9000, 5))), 'outside of the file'],
  [
    'a run far behind the file',
    () => moofOf(traf(tfhd(1, 1, longs(Number.MAX_SAFE_INTEGER)), trun(9000, 5))),
    'a run outside of the file',
  ],
  ['runs over one another', () => moofOf(traf(tfhd(1), trun(400, 50), trun(420, 50))), 'overlap'],
  [
    'an index that leads out of the file',
    () => Buffer.concat([announced(), sidx([[200_000]]), SAMPLE]),
    'out of the file',
  ],
  [
    'an index that leads before the fragments',
    () => Buffer.concat([announced(), SAMPLE, mfra([40])]),
    'out of the file',
  ],
  [
    // Looked up from both places, either chain of boxes ends well.
    'an index that leads into media data, to what looks like boxes',
    () => {
      const inner = Buffer.concat([box('free', Buffer.alloc(8)), box('free')]);
      return Buffer.concat([announced(), sidx([[8], [inner.length]]), box('mdat', inner)]);
    },
    'do not lie where an index says',
  ],
  [
    'an index that breaks off',
    () => Buffer.concat([announced(), box('sidx', words(0, 1, 1))]),
    'sidx breaks off',
  ],
  [
    'a random access table with more rows than it holds',
    () => {
      const tfra = box('tfra', words(0, 1, 0, 99));
      return Buffer.concat([announced(), SAMPLE, box('mfra', tfra, box('mfro', words(0, tfra.length + 24)))]);
    },
    'does not hold its 99 rows',
  ],
  [
    'an index of 65,535 places',
    () =>
      Buffer.concat([
        announced(),
        sidx(Array<[number]>(65_535).fill([8])),
        box('mdat', Buffer.alloc(65_535 * 8)),
      ]),
    'of more than 33554432 bytes',
  ],
  [
    'half a million boxes, as an index has it',
    () =>
      Buffer.concat([
        announced(),
        sidx(Array<[number]>(2000).fill([2048])),
        ...Array<Buffer>(2000 * 256).fill(box('free')),
      ]),
    'more than 200000 boxes',
  ],
  [
    'a fragment of 9 MiB besides its samples',
    () => Buffer.concat([announced(), box('moof', box('free', Buffer.alloc(9 << 20)))]),
    'a box moof of',
  ],
];

async function readAll(file: Buffer): Promise<AudioIndex> {
  const index = await readAudioIndex(inMemory(file, 1000));
  for (let place = 0; place < index.audioTracks; place += 1) index.track(place);
  return index;
}

describe('what is not understood is left alone', () => {
  it.runIf(currentRun === 'core').each(ODD)('%s', async (_name, make, why) => {
    const error: unknown = await readAll(make()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnsupportedLayout);
    expect((error as UnsupportedLayout).message).toContain(why);
  });

  const small = [fragment(700, [20, 30]), fragment(900, [25]), fragment(800, [9, 9, 9])];
  const movie = announced([{ ...AUDIO, tables: NO_SAMPLES }, PICTURES]);
  const places = [0, 1].map((nth) => movie.length + sum(small.slice(0, nth).map(({ length }) => length)));
  const files: readonly [string, Buffer][] = [
    ['with a segment index', Buffer.concat([movie, sidx(small.map(({ length }) => [length])), ...small])],
    ['with tables at the end', Buffer.concat([movie, ...small, mfra(places)])],
  ];

  it.runIf(currentRun === 'all').each(files)(
    'a file %s and any of its bytes changed, without another error and without bytes outside of it',
    async (_name, file) => {
      // Where nothing but zeros lie there is nothing to change.
      const meaningful = [...file.keys()].filter((at) => file[at] !== 0 || file[at + 3] !== 0);
      await expectOddOrInside(file, readAll, meaningful);
    },
  );
});
