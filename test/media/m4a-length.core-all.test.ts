/** What an .m4a says about its length is what comes out of it: its last packet is full, or too short to be heard. */
import { describe, expect, it } from 'vitest';
import { currentRun, rowsOfRun } from '../by-run.ts';
import { extract } from './extracting.ts';
import { decodedSeconds, ffmpeg, inspect } from './oracle.ts';
import { mediaFolder } from './sources.ts';

const folder = mediaFolder();
const RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 96000];
const rows = RATES.flatMap((rate) => [1, 2].map((channels) => [rate, channels] as const));

async function isExact(rate: number, channels: number, seconds: number, request = {}): Promise<void> {
  const input = folder.at('tone.wav');
  const tone = `sine=f=300:r=${rate}:d=${seconds}`;
  await ffmpeg('-v', 'error', '-f', 'lavfi', '-i', tone, '-ac', String(channels), input);
  const { output } = await extract(input, folder.at('out.m4a'), { format: 'm4a', ...request });
  expect(output.sampleRate).toBe(rate);
  expect(Math.abs(output.durationSeconds - seconds)).toBeLessThan(0.002);
  const claimed = Number((await inspect(output.path)).format.duration);
  expect(Math.abs(claimed - seconds)).toBeLessThan(0.005);
  expect(Math.abs((await decodedSeconds(output.path)) - seconds)).toBeLessThan(0.05);
}

describe('an .m4a is as long as it says', () => {
  it.each(rowsOfRun(rows, 1))('at %i Hz, channels: %i', async (rate, channels) => {
    for (const seconds of [10, 1, 3.337]) await isExact(rate, channels, seconds);
  });

  it.runIf(currentRun === 'all')('when it was levelled', () => isExact(8000, 1, 10, { normalize: true }));
});
