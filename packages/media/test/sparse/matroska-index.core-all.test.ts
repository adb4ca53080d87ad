/** Where an audio track lies in a WebM or Matroska file, how it is found, and what is left to be read whole. */
import { open } from 'node:fs/promises';
import { bytesOf } from 'soundpost-outbound/ranges-spans';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { packetsOf } from 'soundpost-testing/oracle';
import { describe, expect, it } from 'vitest';
import { readMatroskaIndex } from '../../src/sparse/matroska/audio-index.ts';
import { IDS } from '../../src/sparse/matroska/elements.ts';
import type { AudioIndex } from '../../src/sparse/mp4/audio-index.ts';
import { UnsupportedLayout } from '../../src/sparse/mp4/boxes.ts';
import { expectOddOrInside } from '../changed-files.ts';
import { inMemory, onDisk, pairs } from './byte-source.ts';
import {
  block,
  cluster,
  cues,
  EBML,
  element,
  endless,
  entry,
  file,
  group,
  number,
  placesOf,
  seekHead,
  TRACKS,
} from './matroska-elements.ts';

describe('a track of a file from a real muxer', () => {
  /** Three seconds of pictures, which come four times. */
  const NOISE = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25:d=3,noise=alls=90:allf=t'];
  const VP8 = '-c:v libvpx -deadline realtime -cpu-used 8 -b:v 8M'.split(' ');
  const pictures = {
    mpeg4: () => cachedMedia('mpeg4.mp4', [...NOISE, '-c:v', 'mpeg4', '-qscale:v', '1', '-g', '25']),
    vp8: () => cachedMedia('vp8.mkv', [...NOISE, ...VP8]),
  };
  const pcm = () => cachedMedia('pcm.wav', ['-f', 'lavfi', '-i', 'anoisesrc=r=48000:d=12:a=0.4', '-ac', '2']);

  const rows = [
    ['aac.mkv', 'mpeg4', 'aac', []],
    ['front.mkv', 'mpeg4', 'aac', ['-reserve_index_space', '20000']],
    ['vp8.webm', 'vp8', 'libopus', []],
    ['flac.mkv', 'mpeg4', 'flac', []],
    ['long-clusters.mkv', 'mpeg4', 'ac3', ['-cluster_time_limit', '30000']],
    ['live.mkv', 'mpeg4', 'aac', ['-write_crc32', '0', '-cues_to_front', '1']],
  ] as const;

  it.each(rowsOfRun(rows, 3))('%s: is covered, and hardly more than that', async (...row) => {
    const [name, kind, encoder, options] = row;
    const inputs = ['-stream_loop', '3', '-i', await pictures[kind](), '-i', await pcm()];
    const path = await cachedMedia(name, [...inputs, '-c:v', 'copy', '-c:a', encoder, ...options]);
    await using handle = await open(path);
    const source = await onDisk(handle);
    const index = await readMatroskaIndex(source);
    const spans = pairs(index.track(0));
    const packets = await packetsOf(path);
    const isCovered = ({ at, bytes }: { at: number; bytes: number }) =>
      spans.some(([start, end]) => start <= at + 20 && at + bytes <= end);
    expect(packets.length).toBeGreaterThan(100);
    expect(packets.filter((packet) => !isCovered(packet))).toEqual([]);
    const packetBytes = packets.reduce((sum, { bytes }) => sum + bytes, 0);
    expect(bytesOf(index.track(0))).toBeLessThanOrEqual(packetBytes + 20 * packets.length);
    expect(source.readBytes).toBeLessThan(source.sizeBytes / 2);
  });
});

/** Clusters of 20 pictures, 10 KB each, with sound between them. */
const CLUSTERS = Array.from({ length: 12 }, () =>
  cluster(
    ...Array.from({ length: 20 }, () => Buffer.concat([block(1, 10_000), block(2, 200), block(2, 300)])),
  ),
);
const BLOCK_BYTES = 9 + 4;
const SOUND_BYTES = 12 * 20 * (200 + 300 + 2 * BLOCK_BYTES);

describe.runIf(currentRun === 'core')('elements', () => {
  it('are found from cluster to cluster, all blocks of several clusters at the same time', async () => {
    const source = inMemory(file(TRACKS, ...CLUSTERS));
    const index = await readMatroskaIndex(source);
    expect(bytesOf(index.track(0))).toBe(SOUND_BYTES);
    expect(source.rounds.length).toBeLessThan(12 + 20 + 4);
    expect(source.readBytes).toBeLessThan(12 * 20 * 1800);
  });

  it('are found by cues at the end, of which a seek head tells', async () => {
    const head = (at: number) => seekHead(IDS.cues, at);
    const before = head(0).length + TRACKS.length;
    const end = before + CLUSTERS.reduce((sum, { length }) => sum + length, 0);
    const places = placesOf(CLUSTERS).map((place) => before + place);
    const source = inMemory(file(head(end), TRACKS, ...CLUSTERS, cues(...places)));
    const index = await readMatroskaIndex(source);
    expect(bytesOf(index.track(0))).toBe(SOUND_BYTES);
    expect(source.rounds.length).toBeLessThan(20 + 5);
  });

  it('are blocks, alone or in groups, with whatever else stands between them', async () => {
    const others = element(IDS.void, Buffer.alloc(50_000));
    const blocks = [group(1, 5000), block(2, 100), others, group(2, 70), block(1, 6000), group(1, 10)];
    const bytes = file(
      others,
      TRACKS,
      element(0x1254c367, Buffer.alloc(300)),
      cluster(...blocks),
      cluster(),
      others,
    );
    const index = await readMatroskaIndex(inMemory(bytes));
    const single = bytes.indexOf(block(2, 100));
    const grouped = bytes.indexOf(group(2, 70)) + 9;
    expect(pairs(index.track(0))).toEqual([
      [single, single + 100 + BLOCK_BYTES],
      [grouped, grouped + 70 + BLOCK_BYTES],
    ]);
    // The pictures too, for ffmpeg looks at the beginning of each track.
    expect(bytesOf(index.lead)).toBe(5000 + 100 + 70 + 6000 + 10 + 5 * BLOCK_BYTES);
  });

  it('of a segment that does not say how long it is go up to the end of the file', async () => {
    const bytes = Buffer.concat([EBML, endless(IDS.segment, TRACKS, ...CLUSTERS)]);
    expect(bytesOf((await readMatroskaIndex(inMemory(bytes))).track(0))).toBe(SOUND_BYTES);
  });

  it.each([
    ['pictures so small that a range costs more than they do', 0, 8000],
    ['round trips so long that all clusters together take as long', 100_000, 0],
  ])('are not looked up for %s', async (_what, roundTripBytes, rangeBytes) => {
    const source = inMemory(file(TRACKS, ...CLUSTERS), roundTripBytes, rangeBytes);
    await expect(readMatroskaIndex(source)).rejects.toThrow('too short to be looked up');
    expect(source.rounds.length).toBeLessThan(20);
  });

  it('are not looked up when the whole file would come as quickly', async () => {
    const source = { ...inMemory(file(TRACKS, ...CLUSTERS)), readEach: async () => undefined };
    await expect(readMatroskaIndex(source)).rejects.toThrow('little would be gained');
  });
});

const encryption = element(
  IDS.contentEncodings,
  element(IDS.contentEncoding, element(IDS.contentEncryption)),
);
const [SAMPLE = Buffer.alloc(0)] = CLUSTERS;

const ODD: readonly [string, () => Buffer, string][] = [
  ['no Matroska', () => Buffer.from('RIFF....WAVE and so on'), 'no Matroska file'],
  ['no segment', () => EBML, 'no segment'],
  ['another element than a segment', () => Buffer.concat([EBML, TRACKS]), 'no segment'],
  ['a file cut off', () => file(TRACKS, SAMPLE).subarray(0, -1), 'no segment up to the end'],
  [
    'something behind the segment',
    () => Buffer.concat([file(TRACKS), Buffer.alloc(9)]),
    'no segment up to the end',
  ],
  ['no sound', () => file(element(IDS.tracks, entry(1, 1)), SAMPLE), 'no audio track'],
  ['no tracks', () => file(cluster()), 'no audio track'],
  ['sound alone', () => file(element(IDS.tracks, entry(1, 2)), SAMPLE), 'nothing but sound'],
  [
    'hardly anything but sound',
    () => file(TRACKS, cluster(block(2, 50_000), block(1, 10))),
    'hardly anything but sound',
  ],
  [
    'encrypted tracks',
    () => file(element(IDS.tracks, entry(1, 1), entry(2, 2, encryption)), SAMPLE),
    'encrypted',
  ],
  [
    'encrypted blocks',
    () => file(TRACKS, cluster(element(IDS.encryptedBlock, Buffer.alloc(9)))),
    'encrypted blocks',
  ],
  ['two tracks of one number', () => file(element(IDS.tracks, entry(1, 1), entry(1, 2))), 'two tracks'],
  [
    '65 tracks',
    () => file(element(IDS.tracks, ...Array.from({ length: 65 }, (_, n) => entry(n, 1 + (n % 2))))),
    '65 tracks',
  ],
  [
    'a track of no type',
    () => file(element(IDS.tracks, element(IDS.trackEntry, Buffer.alloc(0)))),
    'without a number',
  ],
  ['a block of no track', () => file(TRACKS, cluster(block(5, 10))), 'of no track: 5'],
  ['a block before the tracks', () => file(SAMPLE, TRACKS), 'of no track: 1'],
  [
    'a cluster of unknown size',
    () => Buffer.concat([EBML, endless(IDS.segment, TRACKS, endless(IDS.cluster, block(1, 9)))]),
    'unknown size',
  ],
  [
    'a block that goes beyond its cluster',
    () => file(TRACKS, element(IDS.cluster, block(1, 100).subarray(0, -1)), SAMPLE),
    'goes beyond what it lies in',
  ],
  [
    'a cluster that goes beyond the file',
    () => Buffer.concat([EBML, endless(IDS.segment, TRACKS, SAMPLE.subarray(0, -1))]),
    'goes beyond what it lies in',
  ],
  ['a header that is none', () => file(TRACKS, Buffer.alloc(40)), 'breaks off in its header'],
  ['an element of 9 MiB', () => file(TRACKS, element(0x1941a469, Buffer.alloc(9 << 20))), 'an element of'],
  [
    'cues of more clusters than any film has',
    () => {
      const many = Array<Buffer>(20_001).fill(cluster());
      const before = cues(...many.map(() => 0)).length + TRACKS.length;
      return file(cues(...many.map(({ length }, nth) => before + nth * length)), TRACKS, ...many);
    },
    'more than 20000 clusters',
  ],
  [
    'clusters that want much read at the same time',
    () => {
      const large = element(IDS.cluster, element(0xab, Buffer.alloc(5 << 20)));
      const before = cues(...Array<number>(8).fill(0)).length + TRACKS.length;
      const places = Array.from({ length: 8 }, (_, nth) => before + nth * large.length);
      return file(cues(...places), TRACKS, ...Array<Buffer>(8).fill(large));
    },
    'at the same time',
  ],
  ['cues that lead out of the file', () => file(TRACKS, cues(9_999_999), SAMPLE), 'out of the file'],
  [
    'cues that lead into a block, to what looks like an element',
    () => {
      const inner = Buffer.concat([Buffer.from([0x81, 0, 0, 0x80]), element(IDS.void, Buffer.alloc(30))]);
      const picture = element(IDS.simpleBlock, inner);
      const before = cues(0).length + TRACKS.length;
      const body = cluster(picture);
      return file(cues(before + body.indexOf(picture) + 9 + 4), TRACKS, body);
    },
    'do not lie where cues say',
  ],
];

async function readAll(bytes: Buffer): Promise<AudioIndex> {
  const index = await readMatroskaIndex(inMemory(bytes, 100, 10));
  for (let place = 0; place < index.audioTracks; place += 1) index.track(place);
  return index;
}

describe('what is not understood is left alone', () => {
  it.runIf(currentRun === 'core').each(ODD)('%s', async (_name, make, why) => {
    const error: unknown = await readAll(make()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnsupportedLayout);
    expect((error as UnsupportedLayout).message).toContain(why);
  });

  it.runIf(currentRun === 'all')(
    'a file with any of its bytes changed, without another error and without bytes outside of it',
    async () => {
      const small = [0, 1, 2].map(() => cluster(block(1, 60), block(2, 9), group(1, 40), group(2, 8)));
      const head = (at: number) => seekHead(IDS.cues, at);
      const before = head(0).length + TRACKS.length;
      const places = placesOf(small).map((place) => before + place);
      const end = before + small.reduce((sum, { length }) => sum + length, 0);
      const bytes = file(head(end), TRACKS, ...small, cues(...places), element(0x1254c367, number(1)));
      await expectOddOrInside(bytes, readAll);
    },
  );
});
