// @module-tag quick-ffmpeg
/** What is said of copies, which nobody decodes: a few windows are, and all of it only where these are silent (decisions A4). */
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';

const folder = mediaFolder();

const sound = (filter: string) =>
  cachedMedia('copied.m4a', ['-f', 'lavfi', '-i', `sine=d=20:r=48000,${filter}`, '-c:a', 'aac']);

async function warningsOf(path: string): Promise<readonly string[]> {
  const { output } = await extract(path, folder.at('copy.m4a'), { format: 'm4a' });
  expect(output.copied).toBe(true);
  return output.warnings;
}

it.each([
  ['with sound outside the windows', "volume=0:enable='not(between(t,10,11))'", []],
  ['without sound', 'volume=0', ['SILENT']],
])('a copy %s', async (_what, filter, warnings) => {
  expect(await warningsOf(await sound(filter))).toEqual(warnings);
});
