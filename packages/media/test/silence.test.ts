// @module-tag quick-ffmpeg
/** What is said of copies (decisions A4). A short one is decoded while it is copied; of others a few windows, and the rest only if these are silent. */
import { readFile, writeFile } from 'node:fs/promises';
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';

const folder = mediaFolder();

const sound = (seconds: number, filter: string) =>
  cachedMedia('copied.m4a', ['-f', 'lavfi', '-i', `sine=d=${seconds}:r=48000,${filter}`, '-c:a', 'aac']);

async function warningsOf(path: string): Promise<readonly string[]> {
  const { output } = await extract(path, folder.at('copy.m4a'), { format: 'm4a' });
  expect(output.copied).toBe(true);
  return output.warnings;
}

it.each([
  ['with sound outside the windows', 40, "volume=0:enable='not(between(t,20,22))'", []],
  ['without sound', 40, 'volume=0', ['SILENT']],
  ['that is short, with sound', 20, 'volume=0:enable=lt(t\\,19)', []],
  ['that is short, without sound', 20, 'volume=0', ['SILENT']],
])('a copy %s', async (_what, seconds, filter, warnings) => {
  expect(await warningsOf(await sound(seconds, filter))).toEqual(warnings);
});

it('a copy of what cannot be decoded has no warning', async () => {
  const bytes = await readFile(await sound(20, 'volume=1'));
  const path = folder.at('damaged.m4a');
  await writeFile(path, bytes.fill(0xff, bytes.indexOf('mdat') + 64, bytes.indexOf('moov') - 8));
  expect(await warningsOf(path)).toEqual([]);
});
