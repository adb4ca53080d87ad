/**
 * The source's clock (decisions A2a): a tone that sounds in the source's second n sounds in the output's second n, counted in decoded
 * samples, whatever the container, trimmed or not, copied or not.
 */
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { rowsOfRun } from 'soundpost-testing/by-run';
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { decodedSamples, decodedSeconds, ffmpeg } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';

const folder = mediaFolder();
const RATE = 8000;
/** Second n of a source holds this tone, so that each second can be told from the others. */
const toneOf = (second: number): number => 400 + 200 * second;

/** Pictures with a single key frame and B-frames, whose first is decoded before second 0. */
const B_FRAMES = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-x264-params', 'b-adapt=0'];

const codecs: Readonly<Record<string, readonly string[]>> = {
  mp4: ['-c:v', 'libx264', '-bf', '2', '-preset', 'ultrafast', '-c:a', 'aac'],
  mov: ['-c:v', 'mpeg4', '-c:a', 'aac'],
  mkv: ['-c:v', 'mpeg4', '-c:a', 'libmp3lame'],
  'h264.mkv': [...B_FRAMES, '-c:a', 'aac'],
  webm: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-c:a', 'libopus'],
  ts: ['-c:v', 'mpeg2video', '-c:a', 'mp2'],
  mpg: ['-c:v', 'mpeg2video', '-c:a', 'mp2'],
  avi: ['-c:v', 'mpeg4', '-c:a', 'libmp3lame'],
  wmv: ['-c:v', 'wmv2', '-c:a', 'wmav2'],
  'mpeg4.wmv': ['-c:v', 'mpeg4', '-bf', '2', '-g', '999', '-c:a', 'wmav2'],
  flv: ['-c:v', 'flv', '-ar', '44100', '-c:a', 'aac'],
};

interface Damage {
  /** Those that it is made in; default all. */
  readonly containers?: readonly string[];
  /** Of the sound, before it is encoded. */
  readonly filter?: string;
  /** Makes the file in a way of its own. */
  readonly make?: (container: string, path: string) => Promise<unknown>;
  /** Whose tone a second of the source holds; null: silence. Default its own. */
  readonly tone?: (second: number) => number | null;
  /** Where the sound ends, seconds; default 12. */
  readonly ends?: number;
}

/** 33 bits at 90 kHz, less what ffmpeg begins with (1.4 s) and half of the file. */
const BEFORE_WRAP = 2 ** 33 / 90_000 - 1.4 - 6;

const damages: Readonly<Record<string, Damage>> = {
  whole: {},
  gap: {
    // AVI has no timestamps: it cannot hold a gap or a late beginning.
    containers: Object.keys(codecs).filter((container) => container !== 'avi'),
    filter: "aselect='not(between(t,3,7))'",
    tone: (n) => (n < 3 || n >= 7 ? n : null),
  },
  'gap of 90 ms': {
    containers: ['mp4'],
    // Within the edges of two seconds: what follows is in its place only where it was filled.
    filter: "aselect='not(between(t,2.955,3.045))'",
  },
  late: {
    containers: Object.keys(codecs).filter((container) => container !== 'avi'),
    filter: 'atrim=start=3',
    tone: (n) => (n >= 3 ? n : null),
  },
  // Beyond the ten seconds in which ffmpeg looks for what is in a file.
  'very late': {
    containers: ['ts', 'mpg', 'flv'],
    filter: 'atrim=start=11',
    tone: (n) => (n >= 11 ? n : null),
  },
  short: { filter: 'atrim=end=8', ends: 8 },
  'hidden by an edit list': {
    containers: ['mp4', 'mov'],
    make: async (container, path) => {
      const uncut = `${path}.uncut.${container}`;
      await encode(['-g', '999', ...(codecs[container] ?? []), uncut], { seconds: 14 });
      return ffmpeg('-v', 'error', '-ss', '2', '-i', uncut, '-c', 'copy', path);
    },
    tone: (n) => n + 2,
  },
  'delayed by an edit list': {
    containers: ['mp4', 'mov'],
    make: async (container, path) => {
      const whole = await source(container, 'whole');
      const inputs = ['-i', whole, '-itsoffset', '3', '-i', whole];
      return ffmpeg('-v', 'error', ...inputs, '-map', '0:v', '-map', '1:a', '-c', 'copy', '-t', '12', path);
    },
    tone: (n) => (n >= 3 ? n - 3 : null),
  },
  'B-frames': {
    containers: ['ts', 'flv'],
    make: (container, path) => encode([...(codecs[container] ?? []), ...B_FRAMES, path]),
  },
  wrap: {
    containers: ['ts'],
    make: (_, path) => encode([...(codecs.ts ?? []), '-output_ts_offset', String(BEFORE_WRAP), path]),
  },
  'jump back': { containers: ['ts'], make: (_, path) => joined(path, 0) },
  'jump forth': { containers: ['ts'], make: (_, path) => joined(path, 100) },
};

const rowsOf = (formats: readonly string[]) =>
  Object.keys(codecs).flatMap((container) =>
    Object.entries(damages)
      .filter(([, { containers = [container] }]) => containers.includes(container))
      .flatMap(([damage]) => formats.map((format) => [container, damage, format] as const)),
  );

/** In the core a format of each way to mark where sound begins on a gap, the other damages as a copy or an encode, and late sound where ffmpeg alone would begin with it. */
const CORE = new Set([
  ...['wav', 'm4a', 'mp3', 'voice'].map((format) => `mp4 gap ${format}`),
  ...[
    'mp4 gap of 90 ms mp3',
    'mp4 whole m4a',
    'mp4 late opus',
    'mp4 short m4a',
    'mp4 hidden by an edit list m4a',
  ],
  'h264.mkv late mp3',
  'mpeg4.wmv late mp3',
  'ts very late mp3',
]);
const isCore = ([container, damage, format]: readonly [string, string, string]) =>
  CORE.has(`${container} ${damage} ${format}`);
/** Of eight formats `all` takes two or three for each damage in each container, and others for the next. */
const rowsFor = (formats: readonly string[]) => rowsOfRun(rowsOf(formats), isCore, 3);

const made = new Map<string, Promise<string>>();

function source(container: string, damage: string): Promise<string> {
  const name = `${damage}.${container}`;
  const path = made.get(name) ?? make(container, damage, folder.at(name));
  made.set(name, path);
  return path;
}

async function make(container: string, damage: string, path: string): Promise<string> {
  const { filter, make: own } = damages[damage] ?? {};
  await (own?.(container, path) ?? encode([...(codecs[container] ?? []), path], { filter }));
  return path;
}

/** @param options the last one is the path */
async function encode(options: readonly string[], { filter = 'anull', seconds = 12, first = 0 } = {}) {
  const path = options.at(-1) ?? '';
  const made = await cachedMedia(basename(path), [
    ...['-f', 'lavfi', '-i', `testsrc2=s=64x64:r=10:d=${seconds}`],
    ...['-f', 'lavfi', '-i', `aevalsrc='0.5*sin(2*PI*(400+200*floor(t+${first}))*t)':d=${seconds}:s=48000`],
    ...['-filter:a', filter, ...options.slice(0, -1)],
  ]);
  await copyFile(made, path);
}

/** Two transport streams one after the other, the second with other timestamps. */
async function joined(path: string, offset: number): Promise<void> {
  const parts = [`${path}.1.ts`, `${path}.2.ts`] as const;
  const { ts = [] } = codecs;
  await encode([...ts, parts[0]], { seconds: 6 });
  await encode([...ts, '-output_ts_offset', String(offset), parts[1]], { seconds: 6, first: 6 });
  await writeFile(path, Buffer.concat(await Promise.all(parts.map((part) => readFile(part)))));
}

/** Seconds from a second's beginning and end within which its tone has to be the only one; in ADTS the encoder's delay comes on top (docs/timeline.md). */
const edgeOf = (path: string): number => (path.endsWith('.aac') ? 0.1 : 0.05);

/** The tone of each second, null where it is silent, `mixed` where it is not the same between its edges. */
async function tonesOf(path: string): Promise<(number | null | 'mixed')[]> {
  const edge = edgeOf(path);
  const samples = await decodedSamples(path, RATE);
  const toneIn = (from: number, to: number) => toneOfSamples(samples.subarray(from * RATE, to * RATE));
  const seconds = Math.floor(samples.length / RATE + edge);
  return Array.from({ length: seconds }, (_, second) => {
    const begin = toneIn(second + edge, second + 2 * edge);
    const middle = toneIn(second + 0.25, second + 0.75);
    const end = toneIn(second + 1 - 2 * edge, second + 1 - edge);
    return begin === middle && middle === end ? middle : 'mixed';
  });
}

function toneOfSamples(samples: Float32Array): number | null {
  const powers = Array.from({ length: 14 }, (_, n) => powerAt(samples, toneOf(n)));
  const loudest = powers.indexOf(Math.max(...powers));
  return (powers[loudest] ?? 0) > 1e-3 ? loudest : null;
}

/** Goertzel's algorithm. */
function powerAt(samples: Float32Array, hertz: number): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hertz) / RATE);
  let [before, last] = [0, 0];
  for (const sample of samples) [before, last] = [last, sample + coefficient * last - before];
  return (before ** 2 + last ** 2 - coefficient * before * last) / samples.length ** 2;
}

const expected = (damage: string, from: number, to: number): (number | null)[] =>
  Array.from({ length: to - from }, (_, index) => (damages[damage]?.tone ?? Number)(from + index));

const reference = new Map<string, Promise<number>>();

/** Where the sound of a source ends by a job that makes WAV of it. */
function endOf(input: string): Promise<number> {
  const end =
    reference.get(input) ??
    extract(input, `${input}.wav`, { format: 'wav' }).then(({ sourceSeconds }) => sourceSeconds);
  reference.set(input, end);
  return end;
}

describe('second n of the output is second n of the source', () => {
  const formats = ['wav', 'm4a', 'aac', 'mp3', 'ogg', 'opus', 'flac', 'voice'];
  it.each(rowsFor(formats))('%s, %s, as %s', async (container, damage, format) => {
    const input = await source(container, damage);
    const { ends = 12 } = damages[damage] ?? {};
    const request = { format, timeline: 'source' };
    const { output, sourceSeconds } = await extract(input, folder.at(`out.${format}`), request);
    expect(await tonesOf(output.path)).toEqual(expected(damage, 0, ends));
    expect(Math.abs(sourceSeconds - ends)).toBeLessThan(0.1);
    expect(Math.abs(sourceSeconds - (await endOf(input)))).toBeLessThan(0.05);
    expect(Math.abs((await decodedSeconds(output.path)) - output.durationSeconds)).toBeLessThan(0.05);

    const cut = await extract(input, folder.at(`cut.${format}`), { ...request, start: 2, end: 7 });
    expect(await tonesOf(cut.output.path)).toEqual(expected(damage, 2, 7));
    expect(Math.abs(cut.sourceSeconds - sourceSeconds)).toBeLessThan(0.05);
  });
});

/** A closed gap of less than a second moves what follows across the edges of seconds. */
const closable = rowsFor(['wav', 'voice']).filter(([, damage]) => damage !== 'gap of 90 ms');

describe('timeline audio closes gaps and drops a late beginning', () => {
  it.each(closable)('%s, %s, as %s', async (container, damage, format) => {
    const input = await source(container, damage);
    const { output } = await extract(input, folder.at(`closed.${format}`), { format, timeline: 'audio' });
    const sounding = expected(damage, 0, damages[damage]?.ends ?? 12).filter((tone) => tone !== null);
    expect(await tonesOf(output.path)).toEqual(sounding);
    expect(Math.abs(output.durationSeconds - sounding.length)).toBeLessThan(0.1);
  });
});
