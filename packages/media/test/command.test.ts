import { expect, it } from 'vitest';
import { composeArguments } from '../src/command.ts';

it('puts every guard in front of the input that it guards, names files as files, and splits nothing', () => {
  const args = composeArguments({
    inputs: [{ file: '/work space/a:b.mp4', demuxer: 'mov' }],
    graphs: ['[0:1]anull[out0]', '[0:2]anull[out1]'],
    outputs: [
      {
        file: '/work space/out.mp3',
        muxer: 'mp3',
        options: ['-map', '[out0]', '-metadata:s:v:0', 'comment=Cover (front)'],
      },
    ],
  });
  const guards = args.slice(0, args.indexOf('-i')).join(' ');
  // What each of them is for is in the hostile files' suites; the demuxer alone does not bind what a demuxer opens.
  for (const guard of [
    '-protocol_whitelist file',
    '-format_whitelist mov',
    '-f mov',
    '-max_pixels 36000000',
    '-max_streams 1000',
    '-probesize 10M',
    '-analyzeduration 10M',
  ]) {
    expect(guards).toContain(guard);
  }
  expect(args[args.indexOf('-i') + 1]).toBe('file:/work space/a:b.mp4');
  expect(args).toContain('comment=Cover (front)');
  expect(args.filter((_, nth) => args[nth - 1] === '-filter_complex')).toEqual([
    '[0:1]anull[out0]',
    '[0:2]anull[out1]',
  ]);
  expect(args.at(-1)).toBe('file:/work space/out.mp3');
});
