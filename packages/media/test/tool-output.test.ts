import { expect, it } from 'vitest';
import { graphReader, loudnessSummary } from '../src/tool-output.ts';

const INPUT =
  '[graph_0_in_0_1 @ 0x55558a2e5600] tb:1/48000 samplefmt:fltp samplerate:48000 chlayout:stereo\n';

/** How often a graph was set up anew by what ffmpeg wrote, in pieces of so many bytes. */
function rebuilt(log: string, pieceBytes: number): number {
  let times = 0;
  const take = graphReader(() => {
    times += 1;
  });
  for (let at = 0; at < log.length; at += pieceBytes) take(Buffer.from(log.slice(at, at + pieceBytes)));
  return times;
}

it.each([7, 1000])('a graph whose input is set up again is a new one, in pieces of %d', (pieceBytes) => {
  const long = `    title           : ${'x'.repeat(5000)}\n`;
  expect(rebuilt(INPUT + long + INPUT.replace('48000', '44100'), pieceBytes)).toBe(1);
});

it('other inputs, other graphs and what tags say are none', () => {
  const others = INPUT.replace('in_0_1', 'in_0_2') + INPUT.replace('graph_0', 'graph_1');
  expect(rebuilt(`${INPUT}${others}    title           : ${INPUT}`, 50)).toBe(0);
});

it('a summary of ebur128 is read where another thread has written into its unfinished lines', () => {
  // As ffmpeg 7.1 wrote it in 27 of 800 runs on two busy cores.
  const log = `[Parsed_ebur128_0 @ 0x55] Summary:

  Integrated loudness:
    I:         -21.8 LUFS
    Threshold: -32.0 LUFS

  Loudness range:
    LRA:         0.0 LU
    Threshold:   0.0 LUFS
    LRA low:     0.0 LUFS
    LRA high:    0.0 LUFSAll streams finished
[Parsed_ebur128_0 @ 0x55] 

  True peak:
    Peak:      -21.0 dBFSEncoder thread received EOF
`;
  expect(loudnessSummary(log)).toEqual({ lufs: -21.8, peakDb: -21 });
});
