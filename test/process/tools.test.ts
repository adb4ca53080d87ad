/** What `serve` says of its ffmpeg. */
import type { MediaTools } from 'soundpost-media/run';
import { expect, it } from 'vitest';
import { configuredTools, describeTools } from '../../src/process/tools.ts';

const tools = { ffmpegPath: '/usr/bin/ffmpeg', ffprobePath: '', launcher: [] } as unknown as MediaTools;

it.each([
  ['our own', { isOurs: true }, "/usr/bin/ffmpeg, Soundpost's own build"],
  ['one that was asked for', { isOurs: false }, '/usr/bin/ffmpeg'],
  [
    'the system’s',
    { isOurs: false, better: 'script/ffmpeg' },
    "/usr/bin/ffmpeg. Soundpost's own build does short jobs faster (docs/performance.md): script/ffmpeg",
  ],
  [
    'the system’s beside a package that does not fit',
    { isOurs: false, fault: 'a is installed, but not used: it is 2, not 1', better: 'npm install a@1' },
    "/usr/bin/ffmpeg. a is installed, but not used: it is 2, not 1. Soundpost's own build does short jobs faster (docs/performance.md): npm install a@1",
  ],
])('is one line for %s', (_, found, line) => {
  expect(describeTools({ tools, ...found })).toBe(line);
});

it('has no advice for who has chosen by FFMPEG_PATH', async () => {
  const { tools: chosen, better } = await configuredTools({ FFMPEG_PATH: 'ffmpeg' });
  expect([chosen?.ffmpegPath, better]).toEqual([expect.stringMatching(/\/ffmpeg$/), undefined]);
});
