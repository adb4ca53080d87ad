/** Files that end before their time: ffmpeg itself is content with them. */
// @module-tag quick-ffmpeg

import { copyFile, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { byRun, currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { MediaFailure } from '../src/failure.ts';

const folder = mediaFolder();

async function video(extension: string, options: readonly string[]): Promise<string> {
  const picture = `testsrc2=s=64x64:r=10:d=${SECONDS}`;
  const sound = `anoisesrc=d=${SECONDS}:r=48000:a=0.3`;
  const inputs = ['-f', 'lavfi', '-i', picture, '-f', 'lavfi', '-i', sound];
  return cachedMedia(`whole.${extension}`, [...inputs, '-c:v', 'mpeg4', ...options]);
}

async function cutAt(whole: string, part: number): Promise<string> {
  const cut = folder.at('cut');
  await copyFile(whole, cut);
  await truncate(cut, Math.floor((await stat(whole)).size * part));
  return cut;
}

const SECONDS = 5;
/** Where a file is cut, as a part of its size. */
const CUTS = byRun({
  core: [0.6],
  all: [0.005, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95],
});

const CUT =
  /^the file is incomplete: (its last \d+ bytes are missing(, [\d.]+ s of [45]\.\d s)?|it ends at [\d.]+ s of 5\.0 s); upload it again, or set acceptTruncated to use the rest$/;

/** Within what stands in front of the sound there is nothing to take. */
const CUT_SHORT = new RegExp(`${CUT.source}|^the file is incomplete: its last \\d+ bytes are missing$`);

describe('a truncated file', () => {
  it.each(
    rowsOfRun(
      [
        ['mp4', ['-c:a', 'aac', '-movflags', '+faststart'], 'm4a'],
        ['webm', ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-c:a', 'libopus'], 'opus'],
        ['mov', ['-c:a', 'pcm_s16le', '-movflags', '+faststart'], 'mp3'],
        ['mkv', ['-c:a', 'aac'], 'opus'],
        ['flv', ['-c:v', 'flv', '-ar', '44100', '-c:a', 'aac'], 'mp3'],
        ['avi', ['-c:a', 'libmp3lame'], 'wav'],
        ['wmv', ['-c:v', 'wmv2', '-c:a', 'wmav2'], 'flac'],
        ['wav', ['-vn'], 'mp3'],
      ],
      2,
    ),
  )('of %s made with %o into %s is corrupt', async (extension, options, format) => {
    const whole = await video(extension, options);
    const { output, truncated } = await extract(whole, folder.at('whole.out'), { format });
    expect(truncated).toBeNull();
    expect(output.durationSeconds).toBeCloseTo(SECONDS, 0);
    for (const part of CUTS) {
      const cut = await cutAt(whole, part);
      await expect(extract(cut, folder.at('cut.out'), { format })).rejects.toMatchObject({
        code: 'INVALID_VIDEO',
        details: expect.stringMatching(part < 0.2 ? CUT_SHORT : CUT),
      });
      const taking = extract(cut, folder.at('cut.out'), { format, acceptTruncated: true });
      // Of less than a second there may be nothing but the index.
      const taken = await taking.catch((error: unknown) => {
        if (part < 0.2 && error instanceof MediaFailure) return null;
        throw error;
      });
      if (taken === null) continue;
      expect(taken.truncated).toContain('incomplete');
      expect(Math.abs(taken.output.durationSeconds - part * SECONDS)).toBeLessThan(0.5);
    }
  });

  it.runIf(currentRun === 'all')('of mp4 without its index at the end is corrupt', async () => {
    const whole = await video('mp4', ['-c:a', 'aac']);
    for (const part of CUTS) {
      for (const acceptTruncated of [false, true]) {
        const cut = await cutAt(whole, part);
        await expect(
          extract(cut, folder.at('cut.out'), { format: 'mp3', acceptTruncated }),
        ).rejects.toMatchObject({
          code: 'INVALID_VIDEO',
          details: expect.stringMatching(/^the file is incomplete: its last \d+ bytes are missing$/),
        });
      }
    }
  });

  it.runIf(currentRun === 'core')('is one whose sound is all missing', async () => {
    const film = await folder.source('aac.mp4');
    const whole = folder.at('front.mp4');
    await copyFile(
      await cachedMedia('front.mp4', ['-i', film, '-c', 'copy', '-movflags', '+faststart']),
      whole,
    );
    await truncate(whole, (await readFile(whole)).indexOf('mdat') + 50);
    for (const format of ['mp3', 'm4a']) {
      await expect(extract(whole, folder.at('front.out'), { format })).rejects.toMatchObject({
        code: 'INVALID_VIDEO',
      });
    }
  });

  it.runIf(currentRun === 'core')('is not one whose audio is shorter than its video', async () => {
    const pictures = ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=10:d=6'];
    const sound = ['-f', 'lavfi', '-i', 'anoisesrc=d=2:a=0.3'];
    for (const [name, ...options] of [['short.mp4'], ['short.flv', '-c:v', 'flv', '-ar', '44100']] as const) {
      const input = await cachedMedia(name, [...pictures, ...sound, '-c:a', 'aac', ...options]);
      const { output } = await extract(input, folder.at('short.mp3'), { format: 'mp3' });
      expect(output.durationSeconds).toBeCloseTo(2, 0);
    }
  });

  it.runIf(currentRun === 'core')('is not one with damage in the middle', async () => {
    const input = folder.at('damaged.mkv');
    const bytes = await readFile(await folder.source('flac.mkv'));
    for (let at = bytes.length / 2; at < bytes.length / 2 + 3000; at += 100) bytes[Math.floor(at)] = 0xaa;
    await writeFile(input, bytes);
    const { output } = await extract(input, folder.at('damaged.mp3'), { format: 'mp3' });
    expect(output.durationSeconds).toBeGreaterThan(3);
  });
});
