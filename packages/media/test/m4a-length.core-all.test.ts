/** What an .m4a says about its length is what comes out of it: its last packet is full, or too short to be heard. */

import { byRun, currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { examine } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';

const folder = mediaFolder();
const RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 96000];
const rows = RATES.flatMap((rate) => [1, 2].map((channels) => [rate, channels] as const));

async function isExact(rate: number, channels: number, seconds: number, request = {}): Promise<void> {
  const tone = `sine=f=300:r=${rate}:d=${seconds}`;
  const input = await cachedMedia('tone.wav', ['-f', 'lavfi', '-i', tone, '-ac', String(channels)]);
  const { output } = await extract(input, folder.at('out.m4a'), { format: 'm4a', ...request });
  expect(output.sampleRate).toBe(rate);
  expect(Math.abs(output.durationSeconds - seconds)).toBeLessThan(0.002);
  const { format, seconds: heard } = await examine(output.path);
  expect(Math.abs(Number(format.duration) - seconds)).toBeLessThan(0.005);
  expect(Math.abs(heard - seconds)).toBeLessThan(0.05);
}

describe('an .m4a is as long as it says', () => {
  it.each(rowsOfRun(rows, 1))('at %i Hz, channels: %i', async (rate, channels) => {
    for (const seconds of byRun({ core: [3.337], all: [10, 1, 3.337] }))
      await isExact(rate, channels, seconds);
  });

  it.runIf(currentRun === 'all')('when it was levelled', () => isExact(8000, 1, 10, { normalize: true }));
});
