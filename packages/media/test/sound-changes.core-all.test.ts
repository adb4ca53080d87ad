/**
 * Sound that changes its sample rate or channels in the middle stays on the source's clock (decisions A2a): each beep begins in the output when it begins in
 * the source.
 */
// @module-tag quick-ffmpeg
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OutputRequest, TranscriptRequest, WaveformRequest } from 'soundpost-contract/output-request';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract, noAbort, tools } from 'soundpost-testing/extracting';
import { cachedFolder, cachedMedia } from 'soundpost-testing/media-cache';
import {
  decodedSamples,
  decodedSeconds,
  ffmpeg,
  inspect,
  measureLoudness,
  packetTimes,
} from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { extractAudio } from '../src/extract.ts';
import { planAny, planVoiceRendition } from '../src/plan.ts';
import { probe } from '../src/probe.ts';
import { cores } from './parallel/cores.ts';

const folder = mediaFolder();
const RATE = 8000;
/** Frames of AC-3 fill it, at 48 and at 44.1 kHz. */
const PIECE_SECONDS = 5.12;
/** When a beep begins in a piece. */
const BEEPS = [0.5, 1.5, 2.5, 3.5, 4.5];
const BEEP = '0.4*sin(2000*PI*t)*lt(mod(t+0.5\\,1)\\,0.2)';

interface Piece {
  readonly rate: number;
  readonly channels: number;
}

const programme: Piece = { rate: 48_000, channels: 2 };
const mono: Piece = { rate: 48_000, channels: 1 };
const slow: Piece = { rate: 44_100, channels: 2 };
const both: Piece = { rate: 44_100, channels: 1 };
const surround: Piece = { rate: 48_000, channels: 6 };

const changes: Readonly<Record<string, readonly Piece[]>> = {
  rate: [programme, slow],
  channels: [programme, mono],
  both: [programme, both],
  'there and back': [programme, both, programme],
  up: [both, programme],
  'up and back': [both, programme, both],
  surround: [surround, programme, surround],
};

/** Each makes a file of transport streams that hold a piece each. */
const containers: Readonly<Record<string, (parts: readonly string[], path: string) => Promise<unknown>>> = {
  ts: joined,
  'aac.ts': joined,
  mkv: async (parts, path) => {
    await joined(parts, `${path}.ts`);
    return ffmpeg('-v', 'error', '-i', `${path}.ts`, '-c', 'copy', path);
  },
  flv: async (parts, path) => {
    const tags = await Promise.all(parts.map(flvTags));
    const header = Buffer.from('464c5601040000000900000000', 'hex');
    await writeFile(path, Buffer.concat([header, ...tags.flat()]));
  },
  aac: async (parts, path) => {
    for (const part of parts) await ffmpeg('-v', 'error', '-i', part, '-c', 'copy', `${part}.aac`);
    await joined(
      parts.map((part) => `${part}.aac`),
      path,
    );
  },
};

async function joined(parts: readonly string[], path: string): Promise<void> {
  await writeFile(path, Buffer.concat(await Promise.all(parts.map((part) => readFile(part)))));
}

/** The tags of a piece, with the times that it has in its transport stream, less ten seconds (Adobe FLV 10.1, E.4.1). */
async function flvTags(part: string): Promise<Buffer> {
  const path = `${part}.flv`;
  await ffmpeg('-v', 'error', '-i', part, '-c', 'copy', '-bsf:a', 'aac_adtstoasc', path);
  const [first] = await packetTimes(part);
  const file = await readFile(path);
  for (let at = 13; at < file.length; at += 15 + file.readUIntBE(at + 1, 3)) {
    file.writeUIntBE(file.readUIntBE(at + 4, 3) + Math.round((first?.at ?? 0) * 1000) - 9000, at + 4, 3);
  }
  return file.subarray(13);
}

interface Source {
  readonly path: string;
  /** When its beeps begin, seconds. */
  readonly beeps: readonly number[];
  /** Where its last frame ends. */
  readonly endSeconds: number;
}

/** @param gap seconds between two pieces */
async function source(container: string, change: string, gap: number): Promise<Source> {
  const recipe = ['sound that changes', container, changes[change], gap, PIECE_SECONDS, BEEP];
  const path = await cachedFolder(recipe, async (place) => {
    const made = await make(container, change, gap, join(place, `source.${container}`));
    await writeFile(join(place, 'source.json'), JSON.stringify(made));
  });
  const { beeps, endSeconds } = JSON.parse(await readFile(join(path, 'source.json'), 'utf8')) as Source;
  return { path: join(path, `source.${container}`), beeps, endSeconds };
}

async function make(container: string, change: string, gap: number, path: string): Promise<Source> {
  const pieces = changes[change] ?? [];
  // AC-3 says in each frame how it is coded, and changes in the middle of broadcasts; the others are containers of AAC.
  const codec = container === 'ts' || container === 'mkv' ? 'ac3' : 'aac';
  const parts = pieces.map((_, nth) => `${path}.${nth}.ts`);
  for (const [nth, { rate, channels }] of pieces.entries()) {
    const sound = Array.from({ length: channels }, () => BEEP).join('|');
    await ffmpeg(
      ...['-v', 'error', '-f', 'lavfi', '-i', `aevalsrc=${sound}:d=${PIECE_SECONDS}:s=${rate}`],
      ...['-c:a', codec, '-b:a', '192k', '-muxdelay', '0', '-muxpreload', '0'],
      ...['-output_ts_offset', String(10 + nth * (PIECE_SECONDS + gap)), parts[nth] ?? ''],
    );
  }
  await containers[container]?.(parts, path);
  const times = await Promise.all(parts.map((part) => packetTimes(part)));
  const zero = times[0]?.[0]?.at ?? 0;
  // The frames of ADTS follow one another.
  const starts = times.map((part, nth) => {
    const before = times.slice(0, nth).flat();
    const lengths = before.reduce((sum, { seconds }) => sum + seconds, 0);
    return container === 'aac' ? lengths : (part[0]?.at ?? 0) - zero;
  });
  const delays = times.map((part, nth) => 10 + nth * (PIECE_SECONDS + gap) - (part[0]?.at ?? 0));
  const last = times.at(-1) ?? [];
  const beginOfLast = last[0]?.at ?? 0;
  const lengthOfLast = (last.at(-1)?.at ?? 0) + (last.at(-1)?.seconds ?? 0) - beginOfLast;
  return {
    path,
    beeps: starts.flatMap((start, nth) => BEEPS.map((beep) => start + (delays[nth] ?? 0) + beep)),
    endSeconds: (starts.at(-1) ?? 0) + lengthOfLast,
  };
}

/** When beeps begin in a file: where it is loud after a third of a second without. */
async function beepsOf(path: string): Promise<number[]> {
  const beeps: number[] = [];
  let quiet = RATE;
  for (const [at, sample] of (await decodedSamples(path, RATE)).entries()) {
    const isLoud = Math.abs(sample) > 0.06;
    if (isLoud && quiet > RATE / 3) beeps.push(at / RATE);
    quiet = isLoud ? 0 : quiet + 1;
  }
  return beeps;
}

/** As far as a codec smears the beginning of a beep, seconds. */
const SMEAR = 0.006;

function expectBeeps(got: readonly number[], wanted: readonly number[]): void {
  expect(got.map((beep) => beep.toFixed(1))).toEqual(wanted.map((beep) => beep.toFixed(1)));
  const worst = Math.max(...got.map((beep, nth) => Math.abs(beep - (wanted[nth] ?? 0))));
  expect(worst).toBeLessThan(SMEAR);
}

/** To the end of a packet, seconds. */
const ROUNDING: Readonly<Record<string, number>> = { aac: 0.03, m4a: 0.04 };

const rows = [
  ['ts', 'rate', 0, 'wav'],
  ['ts', 'both', 3, 'opus'],
  ['ts', 'channels', 3, 'mp3'],
  ['ts', 'there and back', 3, 'flac'],
  ['flv', 'both', 3, 'opus'],
  ['ts', 'rate', 3, 'm4a'],
  ['ts', 'channels', 0, 'wav'],
  ['ts', 'both', 0, 'ogg'],
  ['ts', 'both', 3, 'wav'],
  ['ts', 'up and back', 0, 'wav'],
  ['ts', 'surround', 3, 'wav'],
  ['ts', 'surround', 0, 'mp3'],
  ['mkv', 'rate', 3, 'wav'],
  ['mkv', 'channels', 0, 'flac'],
  ['mkv', 'there and back', 3, 'voice'],
  ['flv', 'rate', 0.2, 'wav'],
  ['aac', 'both', 0, 'wav'],
  ['aac', 'rate', 0, 'aac'],
] as const;

describe('each beep is in its place', () => {
  it.each(rowsOfRun(rows, 2))(
    '%s, %s changes, with a gap of %d s, as %s',
    async (container, change, gap, format) => {
      const { path, beeps, endSeconds } = await source(container, change, gap);
      const request = { format, copy: 'never', timeline: 'source' };
      const { output, sourceSeconds } = await extract(path, folder.at(`out.${format}`), request);
      // In ADTS the encoder's delay comes on top (docs/timeline.md).
      const delay = format === 'aac' ? 1024 / output.sampleRate : 0;
      expectBeeps(
        await beepsOf(output.path),
        beeps.map((beep) => beep + delay),
      );
      expect(Math.abs(sourceSeconds - endSeconds)).toBeLessThan(0.002);
      expect(Math.abs((await decodedSeconds(output.path)) - endSeconds - delay)).toBeLessThan(
        ROUNDING[format] ?? 0.002,
      );
      const gaps = gap > 0.04 ? ((changes[change]?.length ?? 0) - 1) * gap : 0;
      expect(Math.abs(output.filledSeconds - gaps)).toBeLessThan(0.1);

      const cut = await extract(path, folder.at(`cut.${format}`), { ...request, start: 2, end: 7 });
      const within = beeps.filter((beep) => beep >= 2 && beep < 7).map((beep) => beep - 2);
      expectBeeps(
        await beepsOf(cut.output.path),
        within.map((beep) => beep + delay),
      );
      expect(Math.abs(cut.output.durationSeconds - 5)).toBeLessThan(format === 'aac' ? 0.05 : 1e-4);
    },
  );
});

describe.runIf(currentRun === 'core')('what else is made of such sound', () => {
  it('is right beside others of the same decode', async () => {
    const { path, beeps, endSeconds } = await source('ts', 'both', 3);
    const probed = await probe(tools, path, { signal: noAbort });
    const outputs = [
      [OutputRequest.parse({ format: 'wav' }), 'beside.wav'],
      [WaveformRequest.parse({ format: 'waveform', name: 'peaks', pixelsPerSecond: 100 }), 'beside.json'],
      [TranscriptRequest.parse({ format: 'transcript', name: 'words' }), 'words.wav'],
      [OutputRequest.parse({ format: 'mp3', start: 4, end: 12 }), 'beside.mp3'],
    ] as const;
    const [first, ...others] = outputs.map(([request, name]) => ({
      plan: planAny(request, probed),
      path: folder.at(name),
    }));
    if (first === undefined) throw new Error('no output');
    const voice = {
      plan: planVoiceRendition(OutputRequest.parse({ format: 'wav' }), probed),
      path: folder.at('voice.ogg'),
    };
    const progress: number[] = [];
    const made = await extractAudio({
      ...{ tools, input: path, probe: probed, outputs: [first, ...others], voice, signal: noAbort },
      ...{ maxAudioSeconds: 3600, onProgress: (fraction: number) => progress.push(fraction) },
    });
    expectBeeps(await beepsOf(first.path), beeps);
    expectBeeps(await beepsOf(folder.at('words.wav')), beeps);
    expectBeeps(
      await beepsOf(folder.at('beside.mp3')),
      beeps.filter((beep) => beep > 4 && beep < 12).map((beep) => beep - 4),
    );
    const closed = beeps.map((beep) => (beep > PIECE_SECONDS ? beep - 3 : beep));
    expectBeeps(await beepsOf(voice.path), closed);
    const { data, length } = JSON.parse(await readFile(folder.at('beside.json'), 'utf8'));
    expect(length).toBe(Math.ceil(endSeconds * 100));
    const loud = beeps.map((beep) => data[2 * Math.round((beep + 0.1) * 100) + 1]);
    const quiet = beeps.map((beep) => data[2 * Math.round((beep - 0.1) * 100) + 1]);
    expect([Math.min(...loud) > 20, Math.max(...quiet)]).toEqual([true, 0]);
    expect(made.files.map(({ filledSeconds }) => filledSeconds.toFixed(1))).toEqual([
      '3.0',
      '3.0',
      '3.0',
      '3.0',
    ]);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    expect(progress.at(-1)).toBe(1);
  });

  it('has the channels that each output has of its own', async () => {
    const { path, beeps } = await source('aac.ts', 'up', 0.2);
    const probed = await probe(tools, path, { signal: noAbort });
    const wanted = [
      [OutputRequest.parse({ format: 'wav', channels: 2 }), 'two.wav'],
      [OutputRequest.parse({ format: 'mp3', channels: 1, timeline: 'source' }), 'one.mp3'],
      [WaveformRequest.parse({ format: 'waveform', name: 'peaks', pixelsPerSecond: 100 }), 'of-one.json'],
    ] as const;
    const [first, ...others] = wanted.map(([request, name]) => ({
      plan: planAny(request, probed),
      path: folder.at(name),
    }));
    if (first === undefined) throw new Error('no output');
    const { files } = await extractAudio({
      ...{ tools, input: path, probe: probed, outputs: [first, ...others], signal: noAbort },
      maxAudioSeconds: 3600,
    });
    const [two, one] = await Promise.all(['two.wav', 'one.mp3'].map((name) => inspect(folder.at(name))));
    expect([two?.audio.channels, one?.audio.channels]).toEqual([2, 1]);
    expect(files.slice(0, 2).map(({ channels }) => channels)).toEqual([2, 1]);
    expectBeeps(await beepsOf(folder.at('one.mp3')), beeps);
    const { length } = JSON.parse(await readFile(folder.at('of-one.json'), 'utf8'));
    expect(Math.abs(length - 100 * (2 * PIECE_SECONDS + 0.2))).toBeLessThan(10);
  });

  it('takes no more of the disk than it asks for, and for a part no more than that', async () => {
    const { path } = await source('ts', 'surround', 0);
    const asked: number[] = [];
    const makeRoom = async (bytes: number): Promise<void> => void asked.push(bytes);
    const request = { format: 'wav', channels: 2 };
    // Less than the PCM takes: what was asked for has to do.
    await extract(path, folder.at('all.wav'), request, { makeRoom, maxOutputBytes: 3_200_000 });
    await extract(path, folder.at('part.wav'), { ...request, start: 4, end: 6 }, { makeRoom });
    const secondBytes = 48_000 * 2 * 4;
    expect(asked.map((bytes) => Math.round(bytes / secondBytes / 1.2))).toEqual([15, 7]);
  });

  it('is made of any source whose tags have the names of what ffmpeg logs', async () => {
    const input = '[graph_0_in_0_0 @ 0x1] tb:';
    const path = await cachedMedia('named.mp4', [
      ...['-f', 'lavfi', '-i', `aevalsrc=${BEEP}:d=5:s=48000`],
      ...['-movflags', 'use_metadata_tags', '-metadata', `x\n${input}\n${input}\n=1`],
    ]);
    const { output } = await extract(path, folder.at('named.wav'), { format: 'wav' });
    expectBeeps(await beepsOf(output.path), BEEPS);
  });

  it('has the loudness that was asked for, measured of all of it', async () => {
    const { path, beeps } = await source('ts', 'channels', 3);
    const { output } = await extract(path, folder.at('loud.wav'), { format: 'wav', loudness: -23 });
    expect((await measureLoudness(output.path)).lufs).toBeCloseTo(-23, 0);
    expectBeeps(await beepsOf(output.path), beeps);
  });

  it('is encoded where a copy would have another rate than its container says', async () => {
    const { path, beeps } = await source('aac.ts', 'rate', 0.2);
    const { output } = await extract(path, folder.at('copied.m4a'), { format: 'm4a' });
    expect(output.copied).toBe(false);
    expectBeeps(await beepsOf(output.path), beeps);
  });
});

it.runIf(currentRun === 'all')('is the same encoded in parts as in one', async () => {
  const { path } = await source('mkv', 'there and back', 3);
  const unjoined: string[] = [];
  const { held, takeIdle } = cores(2);
  const request = { format: 'opus', quality: 'high' };
  const one = await extract(path, folder.at('one.opus'), request);
  const lengths = { minPartSeconds: 8, overlapSeconds: 5 };
  const parts = await extract(path, folder.at('parts.opus'), request, {
    parallel: { takeIdle, lengths, onUnjoined: (why) => unjoined.push(why) },
  });
  expect([held, unjoined]).toEqual([{ asked: 2, now: 0 }, []]);
  expect(parts.sourceSeconds).toBe(one.sourceSeconds);
  expect(parts.output.filledSeconds).toBe(one.output.filledSeconds);
  const [joined, whole] = await Promise.all(
    [parts, one].map(({ output }) => decodedSamples(output.path, 48_000)),
  );
  expect(joined?.length).toBe(whole?.length);
  const largest = joined?.reduce(
    (most, sample, at) => Math.max(most, Math.abs(sample - (whole?.[at] ?? 0))),
    0,
  );
  expect(largest).toBeLessThan(0.01);
});
