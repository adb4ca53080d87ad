/** A waveform is the lowest and the highest of each stretch of the decoded sound, as audiowaveform writes it (decisions A8). */
// @module-tag quick-ffmpeg

import { ffmpeg } from 'soundpost-testing/oracle';
import { mediaFolder, type SourceName } from 'soundpost-testing/sources';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesOf } from '../../../src/jobs/payloads.ts';
import { makeSurroundings, type Surroundings } from '../worker-fixture.ts';
import { contentOf, runJob } from './outputs-run.ts';

const folder = mediaFolder();
let web: VideoServer;
let around: Surroundings;

beforeAll(async () => {
  web = await serveVideos(folder.path);
  around = await makeSurroundings(web.allow);
});
afterAll(async () => {
  await around.close();
  await web.close();
});

interface Waveform {
  readonly sample_rate: number;
  readonly samples_per_pixel: number;
  readonly length: number;
  readonly data: readonly number[];
}

async function waveformOf(source: SourceName, request: object): Promise<Waveform & Record<string, unknown>> {
  await folder.place(source);
  const { result } = runJob(around, web.url(source), {
    outputs: [
      { name: 'audio', format: 'flac' },
      { name: 'peaks', format: 'waveform', ...request },
    ],
  });
  const [, file] = filesOf(await result);
  return JSON.parse((await contentOf(around, file?.storageKey ?? '')).toString());
}

/** From ffmpeg's own PCM, in the plainest way. */
async function expected(source: SourceName, samplesPerPixel: number): Promise<number[]> {
  const { stdout } = await ffmpeg(
    '-v',
    'error',
    '-i',
    await folder.source(source),
    '-map',
    '0:a:0',
    '-ac',
    '1',
    '-f',
    's16le',
    '-',
  );
  const samples = Array.from({ length: stdout.length / 2 }, (_, nth) => stdout.readInt16LE(2 * nth));
  const pairs: number[] = [];
  for (let at = 0; at < samples.length; at += samplesPerPixel) {
    const stretch = samples.slice(at, at + samplesPerPixel);
    pairs.push(Math.trunc(Math.min(...stretch) / 256), Math.trunc(Math.max(...stretch) / 256));
  }
  return pairs;
}

describe('a waveform', () => {
  it.each<[SourceName, object, number, number]>([
    ['speech.mp4', { pixelsPerSecond: 100 }, 48_000, 480],
    ['aac.mp4', { pixelsPerSecond: 1 }, 48_000, 48_000],
    ['phone.wav', {}, 8000, 400],
  ])('of %s with %o', async (source, request, rate, samplesPerPixel) => {
    const { data, ...about } = await waveformOf(source, request);
    expect(about).toEqual({
      version: 2,
      channels: 1,
      sample_rate: rate,
      samples_per_pixel: samplesPerPixel,
      bits: 8,
      length: data.length / 2,
    });
    const wanted = await expected(source, samplesPerPixel);
    expect(data).toHaveLength(wanted.length);
    // Two mixes to mono may round a sample differently.
    for (const [nth, value] of data.entries())
      expect(Math.abs(value - (wanted[nth] ?? 0))).toBeLessThanOrEqual(1);
  });

  it('of silence is flat', async () => {
    const { data, length } = await waveformOf('silence.wav', {});
    expect(length).toBe(40);
    expect(data.every((value) => value === 0)).toBe(true);
  });

  it('of a part is that part', async () => {
    const whole = await waveformOf('music.wav', { pixelsPerSecond: 10 });
    const part = await waveformOf('music.wav', { pixelsPerSecond: 10, start: 1, end: 2.5 });
    expect(part.data).toEqual(whole.data.slice(20, 50));
  });
});
