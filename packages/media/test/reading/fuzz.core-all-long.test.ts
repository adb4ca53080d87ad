/**
 * Damaged descriptions through our own readers: each is read or refused. The long run shows that none takes more than 100 ms of a processor.
 * FUZZ_SEED=<number> makes a run's files anew. Beside it `test/hostile/corpus` gives 500 damaged files to ffmpeg.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OutboundFailed } from 'soundpost-outbound/errors';
import { byRun, currentRun } from 'soundpost-testing/by-run';
import { noAbort } from 'soundpost-testing/extracting';
import { cachedFolder } from 'soundpost-testing/media-cache';
import { mutations } from 'soundpost-testing/mutations';
import { ffmpeg } from 'soundpost-testing/oracle';
import { type Random, seeded } from 'soundpost-testing/random';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { encryptedStreams } from '../../src/encryption.ts';
import { MediaFailure } from '../../src/failure.ts';
import { BrokenOgg, isChained, opusSamples } from '../../src/ogg/pages.ts';
import { readMatroskaIndex } from '../../src/sparse/matroska/audio-index.ts';
import { readAudioIndex } from '../../src/sparse/mp4/audio-index.ts';
import { UnsupportedLayout } from '../../src/sparse/mp4/boxes.ts';
import { readDescription } from '../../src/streams/description.ts';
import { readMovie } from '../../src/streams/join/movie.ts';
import { examine } from '../../src/streams/segments/examine-apart.ts';
import { missingEnd } from '../../src/truncation.ts';
import { inMemory } from '../sparse/byte-source.ts';

/** Of each kind. */
const COUNT = byRun({ core: 40, all: 400, long: 20_000 });
const SEED = Number(process.env.FUZZ_SEED ?? byRun({ core: 1, all: 2, long: Date.now() % 1_000_000 }));
const MOST_MS = currentRun === 'long' ? 100 : Number.POSITIVE_INFINITY;
const timeout = 60 * 60_000;

const folder = mediaFolder();

type Read = (bytes: Buffer) => Promise<unknown>;

/** Files of which each reader takes the unchanged one, by what reads them. */
const kinds: Readonly<Record<string, { seeds: () => Promise<Buffer[]>; readers: readonly Read[] }>> = {
  Matroska: {
    seeds: () => partsNamed(/\.mkv$/),
    readers: [(bytes) => readMatroskaIndex(inMemory(bytes)), onDisk('matroska', encryptedStreams)],
  },
  Ogg: {
    seeds: () => partsNamed(/\.ogg$/),
    readers: [(bytes) => atPath(bytes, isChained), (bytes) => atPath(bytes, opusSamples)],
  },
  MP4: {
    seeds: () => partsNamed(/^film.*\.mp4$/),
    readers: [
      (bytes) => readAudioIndex(inMemory(bytes)),
      onDisk('mov', missingEnd),
      onDisk('mov', encryptedStreams),
    ],
  },
  'headers of fMP4': {
    seeds: () => partsNamed(/init.*\.(mp4|m4s)$/),
    readers: [async (bytes) => readMovie(bytes)],
  },
  segments: {
    seeds: () => partsNamed(/\d\.(ts|m4s|webm|aac|mp3)$/),
    readers: [(bytes) => atPath(bytes, (path) => examine(path, async () => undefined, { signal: noAbort }))],
  },
  HLS: { seeds: () => partsNamed(/\.m3u8$/), readers: [describeAs('hls')] },
  DASH: { seeds: () => partsNamed(/\.mpd$/), readers: [describeAs('dash')] },
};

it.each(Object.entries(kinds))(
  `of ${COUNT} damaged files each is read or refused: %s`,
  async (name, { seeds, readers }) => {
    const files = await seeds();
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) for (const read of readers) await read(file);
    const wrong: string[] = [];
    let refused = 0;
    for (let nth = 0; nth < COUNT; nth += 1) {
      const random = seeded(SEED * 1_000_003 + nth);
      const damaged = damage(random.pick(files), random);
      for (const read of readers) {
        const { ms, error } = await timed(() => read(damaged));
        if (error !== undefined) refused += 1;
        if (error !== undefined && !isRefusal(error)) wrong.push(`${nth}: ${error}`);
        // A look more, since others run beside it.
        const isSlow = ms > MOST_MS && (await timed(() => read(damaged))).ms > MOST_MS;
        if (isSlow) wrong.push(`${nth}: ${Math.round(ms)} ms`);
      }
    }
    process.stdout.write(
      `fuzz: ${name}, FUZZ_SEED=${SEED}: ${files.length} seeds, ${refused} refused of ${COUNT * readers.length}\n`,
    );
    expect(wrong).toEqual([]);
    expect(refused).toBeGreaterThan(0);
  },
  timeout,
);

function isRefusal(error: unknown): boolean {
  return [MediaFailure, OutboundFailed, UnsupportedLayout, BrokenOgg, RangeError].some(
    (kind) => error instanceof kind,
  );
}

async function timed(work: () => Promise<unknown>): Promise<{ ms: number; error: unknown }> {
  const before = process.cpuUsage();
  const error = await work().then(
    () => undefined,
    (failure: unknown) => failure,
  );
  const { user, system } = process.cpuUsage(before);
  return { ms: (user + system) / 1000, error };
}

/** One to three damages: of bytes, or of a number as texts have it. */
function damage(file: Buffer, random: Random): Buffer {
  let bytes = file;
  for (let left = 1 + random.below(3); left > 0 && bytes.length >= 16; left -= 1)
    bytes = random.pick([...Object.values(mutations), otherNumber])(bytes, random);
  return bytes;
}

const NUMBERS = ['0', '-1', '1e9', '99999999999999999999', '0.0000001', 'NaN', '', '2147483648'];

function otherNumber(bytes: Buffer, random: Random): Buffer {
  const text = bytes.toString('latin1');
  const numbers = [...text.slice(0, 8_192).matchAll(/\d+(\.\d+)?/g)];
  if (numbers.length === 0) return bytes;
  const { 0: old, index } = random.pick(numbers);
  return Buffer.from(text.slice(0, index) + random.pick(NUMBERS) + text.slice(index + old.length), 'latin1');
}

/** Films, most of which are pictures: others are not read in parts. Sound, and parts of streams. */
async function partsNamed(names: RegExp): Promise<Buffer[]> {
  const tone = ['-v', 'error', '-f', 'lavfi', '-i', 'sine=d=3', '-c:a', 'aac'];
  const hls = ['-f', 'hls', '-hls_time', '1', '-hls_playlist_type', 'vod'];
  const noise = 'testsrc2=s=160x90:r=10:d=3,noise=alls=90:allf=t';
  const film = [
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    noise,
    ...tone.slice(2),
    '-c:v',
    'mpeg4',
    '-qscale:v',
    '2',
  ];
  const made = await cachedFolder(['fuzzed', tone, hls, film], async (place) => {
    await ffmpeg(...film, join(place, 'film.mkv'));
    await ffmpeg(...film, '-cluster_time_limit', '500', join(place, 'clusters.mkv'));
    await ffmpeg(...film, join(place, 'film.mp4'));
    await ffmpeg(...film, '-movflags', 'frag_keyframe+empty_moov', join(place, 'film-fragments.mp4'));
    await ffmpeg(...tone.slice(0, -1), 'libopus', join(place, 'sound.ogg'));
    await ffmpeg(...tone, ...hls, join(place, 'ts.m3u8'));
    await ffmpeg(...tone, ...hls, '-hls_segment_type', 'fmp4', join(place, 'fmp4.m3u8'));
    await ffmpeg(...tone, '-f', 'dash', '-seg_duration', '1', join(place, 'dash.mpd'));
    await ffmpeg(...tone, '-f', 'dash', '-use_timeline', '0', '-use_template', '0', join(place, 'list.mpd'));
    await ffmpeg(...tone, '-f', 'adts', join(place, 'packed1.aac'));
  });
  const found = (await readdir(made)).filter((name) => names.test(name));
  return Promise.all(found.map((name) => readFile(join(made, name))));
}

async function atPath<T>(bytes: Buffer, read: (path: string) => Promise<T>): Promise<T> {
  const path = folder.at(`fuzzed-${crypto.randomUUID()}`);
  await writeFile(path, bytes);
  try {
    return await read(path);
  } finally {
    await rm(path);
  }
}

function onDisk(demuxer: string, read: (file: Parameters<typeof missingEnd>[0]) => Promise<unknown>): Read {
  return (bytes) => atPath(bytes, (path) => read({ path, demuxer, sizeBytes: bytes.length }));
}

function describeAs(kind: 'hls' | 'dash'): Read {
  const url = 'http://cdn.example/stream';
  return (bytes) => readDescription({ kind, bytes, url, asked: [undefined, 0, 'en'] });
}
