/** The length of an Ogg Opus file, counted by its packets, is what libopus decodes of it. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { opusSamples } from '../../../src/media/ogg/opus-length.ts';
import { decodedSamples } from '../oracle.ts';
import { mediaFolder } from '../sources.ts';

const run = promisify(execFile);
const folder = mediaFolder();

const ffmpeg = (...args: string[]) => run('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...args]);

it.each([
  { what: 'music, 20 ms a packet', options: ['-b:a', '96k'] },
  {
    what: 'speech in packets of 60 ms',
    options: ['-b:a', '16k', '-application', 'voip', '-frame_duration', '60'],
  },
  { what: 'packets of 2.5 ms, over several pages', options: ['-b:a', '400k', '-frame_duration', '2.5'] },
  { what: 'a length that is no multiple of a packet', options: ['-b:a', '64k', '-t', '1.2345'] },
  { what: 'less than a packet', options: ['-b:a', '64k', '-t', '0.007'] },
])('$what', async ({ options }) => {
  const path = folder.at('made.opus');
  await ffmpeg('-i', await folder.source('music.wav'), '-c:a', 'libopus', ...options, path);
  expect(await opusSamples(path)).toBe((await decodedSamples(path, 48_000)).length);
});

it.each(['webm', 'mp4', 'mkv'])(
  'packets that were copied out of a %s that begins late',
  async (container) => {
    const opus = folder.at('before.opus');
    await ffmpeg('-i', await folder.source('music.wav'), '-c:a', 'libopus', opus);
    const path = folder.at('after.opus');
    await ffmpeg('-itsoffset', '0.7', '-i', opus, '-c', 'copy', folder.at(`late.${container}`));
    await ffmpeg(
      ...['-i', folder.at(`late.${container}`), '-c', 'copy', '-avoid_negative_ts', 'make_zero', path],
    );
    expect(await opusSamples(path)).toBe((await decodedSamples(path, 48_000)).length);
  },
);
