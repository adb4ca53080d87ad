/** The length of an Ogg Opus file, counted by its packets, is what libopus decodes of it. */

import { cachedMedia } from 'soundpost-testing/media-cache';
import { decodedSamples } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { opusSamples } from '../../src/ogg/pages.ts';

const folder = mediaFolder();

async function opus(...options: string[]): Promise<string> {
  return cachedMedia('made.opus', ['-i', await folder.source('music.wav'), '-c:a', 'libopus', ...options]);
}

it.each([
  {
    what: 'speech in packets of 60 ms',
    options: ['-b:a', '16k', '-application', 'voip', '-frame_duration', '60'],
  },
  { what: 'packets of 2.5 ms, over several pages', options: ['-b:a', '400k', '-frame_duration', '2.5'] },
  { what: 'less than a packet', options: ['-b:a', '64k', '-t', '0.007'] },
])('$what', async ({ options }) => {
  const path = await opus(...options);
  expect(await opusSamples(path)).toBe((await decodedSamples(path, 48_000)).length);
});

it('packets that were copied out of a film that begins late', async () => {
  const late = await cachedMedia('late.mkv', ['-itsoffset', '0.7', '-i', await opus(), '-c', 'copy']);
  const path = await cachedMedia('after.opus', ['-i', late, '-c', 'copy', '-avoid_negative_ts', 'make_zero']);
  expect(await opusSamples(path)).toBe((await decodedSamples(path, 48_000)).length);
});
