/** Normalised files, measured by ebur128 on what they decode to. */
// @module-tag quick-ffmpeg

import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract } from 'soundpost-testing/extracting';
import { decodedSamples, decodedSeconds, measureLoudness } from 'soundpost-testing/oracle';
import { mediaFolder, type SourceName } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';

const folder = mediaFolder();

describe.each(
  rowsOfRun(
    [
      { source: 'clipping.wav', format: 'mp3' },
      { source: 'speech.wav', format: 'mp3' },
      { source: 'speech.mp4', format: 'opus', quality: 'low' },
      { source: 'music.wav', format: 'mp3', quality: 'low' },
      { source: 'music.wav', format: 'ogg' },
      { source: 'clipping.wav', format: 'm4a', quality: 'low' },
      { source: 'clipping.wav', format: 'flac' },
      { source: 'speech.wav', format: 'voice' },
    ],
    1,
  ),
)('$source as $format', ({ source, ...request }: { source: SourceName; format: string }) => {
  it('is within 0.5 LU of −16 LUFS and under −1 dBTP', async () => {
    const input = await folder.source(source);
    const { loudness, output } = await extract(input, folder.at(`${source}.${request.format}`), {
      ...request,
      normalize: true,
    });
    const measured = await measureLoudness(output.path);
    expect(Math.abs(measured.lufs - -16)).toBeLessThanOrEqual(0.5);
    expect(measured.truePeakDbtp).toBeLessThanOrEqual(-1);
    expect(loudness?.outputLufs).toBeCloseTo(measured.lufs, 1);
    expect(loudness?.truePeakDbtp).toBeCloseTo(measured.truePeakDbtp, 1);
    expect(Math.abs(output.durationSeconds - (await decodedSeconds(input)))).toBeLessThan(0.05);
  });
});

it.runIf(currentRun === 'core')(
  'reaches what is asked for, of a part and a mix as they come out',
  async () => {
    const { output, loudness } = await extract(await folder.source('clipping.wav'), folder.at('part.flac'), {
      ...{ format: 'flac', loudness: -28, channels: 1, sampleRate: 22_050, start: 0.5, end: 3 },
    });
    expect(Math.abs((await measureLoudness(output.path)).lufs - -28)).toBeLessThanOrEqual(0.5);
    expect(output.durationSeconds).toBeCloseTo(2.5, 2);
    expect(loudness?.gainDb).toBeCloseTo(-28 - (loudness?.inputLufs ?? 0), 1);
  },
);

it.runIf(currentRun === 'core')('changes nothing but the level: one gain for every sample', async () => {
  const input = await folder.source('phone.wav');
  const { output, loudness } = await extract(input, folder.at('gain.wav'), { format: 'wav', loudness: -24 });
  const before = await decodedSamples(input, 8000);
  const after = await decodedSamples(output.path, 8000);
  const factor = 10 ** ((loudness?.gainDb ?? 0) / 20);
  const worst = before.reduce(
    (most, sample, at) => Math.max(most, Math.abs(sample * factor - (after[at] ?? 0))),
    0,
  );
  expect(after.length).toBe(before.length);
  // Two quantisations to 16 bits.
  expect(worst).toBeLessThan(3 / 32_768);
});

it.runIf(currentRun === 'core')('keeps the ceiling where the target cannot be reached under it', async () => {
  const { output, loudness } = await extract(await folder.source('speech.wav'), folder.at('loud.mp3'), {
    format: 'mp3',
    loudness: -6,
  });
  const measured = await measureLoudness(output.path);
  expect(measured.truePeakDbtp).toBeLessThanOrEqual(-1);
  expect(measured.lufs).toBeGreaterThan(-12);
  expect(loudness?.outputLufs).toBeCloseTo(measured.lufs, 1);
});

it.runIf(currentRun === 'core')('leaves silence silent', async () => {
  const { loudness } = await extract(await folder.source('silence.wav'), folder.at('silence.mp3'), {
    format: 'mp3',
    normalize: true,
  });
  expect(loudness).toMatchObject({ inputLufs: -70, outputLufs: -70, gainDb: 0 });
});
