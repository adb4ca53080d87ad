/** Files that end before their time: ffmpeg itself is content with them. */

import { copyFile, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { currentRun, rowsOfRun } from '../by-run.ts';
import { extract } from './extracting.ts';
import { ffmpeg } from './oracle.ts';
import { mediaFolder } from './sources.ts';

const folder = mediaFolder();

describe('a truncated file', () => {
  it.each(
    rowsOfRun(
      [
        ['mp4', ['-c:a', 'aac', '-movflags', '+faststart'], 'mp3'],
        ['mp4', ['-c:a', 'aac', '-movflags', '+faststart'], 'm4a'],
        ['mkv', ['-c:a', 'aac'], 'opus'],
        ['webm', ['-c:v', 'libvpx', '-deadline', 'realtime', '-c:a', 'libopus'], 'opus'],
        ['flv', ['-c:v', 'flv', '-ar', '44100', '-c:a', 'aac'], 'mp3'],
        ['avi', ['-c:a', 'libmp3lame'], 'wav'],
        ['wav', ['-vn'], 'mp3'],
      ],
      2,
    ),
  )('of %s made with %o into %s is corrupt', async (extension, options, format) => {
    const whole = folder.at(`whole.${extension}`);
    await ffmpeg(
      ...[
        '-v',
        'error',
        '-f',
        'lavfi',
        '-i',
        'testsrc2=s=64x64:r=10:d=5',
        '-f',
        'lavfi',
        '-i',
        'anoisesrc=d=5:r=48000:a=0.3',
      ],
      ...['-c:v', 'mpeg4', ...options, whole],
    );
    const cut = folder.at(`cut.${extension}`);
    await copyFile(whole, cut);
    await truncate(cut, Math.floor((await stat(whole)).size * 0.6));
    await expect(extract(cut, folder.at('cut.out'), { format })).rejects.toMatchObject({
      code: 'INVALID_VIDEO',
      details: expect.stringContaining('truncated'),
    });
    const taken = await extract(cut, folder.at('cut.out'), { format, acceptTruncated: true });
    expect(taken.truncated).toContain('truncated');
    expect(taken.output.durationSeconds).toBeGreaterThan(1.5);
    expect(taken.output.durationSeconds).toBeLessThan(4);
    const { output, truncated } = await extract(whole, folder.at('whole.out'), { format });
    expect(truncated).toBeNull();
    expect(output.durationSeconds).toBeCloseTo(5, 0);
  });

  it.runIf(currentRun === 'core')('is one whose sound is all missing', async () => {
    const whole = folder.at('front.mp4');
    await ffmpeg(
      '-v',
      'error',
      '-i',
      await folder.source('aac.mp4'),
      '-c',
      'copy',
      '-movflags',
      '+faststart',
      whole,
    );
    await truncate(whole, (await readFile(whole)).indexOf('mdat') + 50);
    for (const format of ['mp3', 'm4a', 'flac']) {
      await expect(extract(whole, folder.at('front.out'), { format })).rejects.toMatchObject({
        code: 'INVALID_VIDEO',
      });
    }
  });

  it.runIf(currentRun === 'core')('is not one whose audio is shorter than its video', async () => {
    for (const [name, ...options] of [
      ['short.mp4'],
      ['short.mkv'],
      ['short.flv', '-c:v', 'flv', '-ar', '44100'],
    ] as const) {
      const input = folder.at(name);
      await ffmpeg(
        ...[
          '-v',
          'error',
          '-f',
          'lavfi',
          '-i',
          'testsrc2=s=64x64:r=10:d=6',
          '-f',
          'lavfi',
          '-i',
          'anoisesrc=d=2:a=0.3',
        ],
        ...['-c:a', 'aac', ...options, input],
      );
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
