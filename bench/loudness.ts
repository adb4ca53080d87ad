/**
 * A job that normalises, against ffmpeg's own way of doing it: loudnorm in two passes, the second of which encodes.
 *
 *     node bench/loudness.ts [--minutes 10] [--runs 5]
 */
import { join } from 'node:path';
import { z } from 'zod';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { inputFolder, strokesOf } from './measuring/inputs.ts';
import { openJobBench, rawFfmpeg } from './measuring/jobs.ts';

const TARGET_LUFS = -16;
const { minutes, runs } = askedFor({ minutes: 10, runs: 5 });
const file = join(inputFolder, await strokesOf(minutes));
const bench = await openJobBench();
const upload = await bench.upload(file);
const misses: number[] = [];
const peaks: number[] = [];

async function ours(): Promise<number> {
  const begunAt = performance.now();
  const result = await bench.run(
    { upload },
    { format: 'mp3', bitrate: '192k', normalize: true, loudness: TARGET_LUFS },
  );
  const seconds = (performance.now() - begunAt) / 1000;
  // Measured by ffmpeg on the stored file, not by what the job says of itself.
  const stored = await bench.storage.localCopy(result.outputFile?.storageKey ?? '', bench.folder);
  const said = await rawFfmpeg(stored, '-af', 'ebur128=peak=true', '-f', 'null', '-');
  const summary = said.slice(said.lastIndexOf('Summary:'));
  misses.push(Math.abs(Number(/I:\s+(\S+) LUFS/.exec(summary)?.[1]) - TARGET_LUFS));
  peaks.push(Number(/Peak:\s+(\S+) dBFS/.exec(summary)?.[1]));
  await bench.discard(result);
  return seconds;
}

const Measured = z.object({
  input_i: z.string(),
  input_tp: z.string(),
  input_lra: z.string(),
  input_thresh: z.string(),
  target_offset: z.string(),
});

function twoPasses(): Promise<number> {
  return secondsOf(async () => {
    const target = `I=${TARGET_LUFS}:TP=-1:LRA=11`;
    const said = await rawFfmpeg(file, '-af', `loudnorm=${target}:print_format=json`, '-f', 'null', '-');
    const measured = Measured.parse(JSON.parse(said.slice(said.lastIndexOf('{'), said.lastIndexOf('}') + 1)));
    const known = [
      `measured_I=${measured.input_i}:measured_TP=${measured.input_tp}:measured_LRA=${measured.input_lra}`,
      `measured_thresh=${measured.input_thresh}:offset=${measured.target_offset}:linear=true`,
    ].join(':');
    const encoder = ['-ar', '48000', '-c:a', 'libmp3lame', '-b:a', '192k'];
    await rawFfmpeg(file, '-af', `loudnorm=${target}:${known}`, ...encoder, join(bench.folder, 'raw.mp3'));
  });
}

printRow({
  what: `normalize to ${TARGET_LUFS} LUFS, ${minutes} min → mp3 192k`,
  against: 'two passes of loudnorm, encoding in the second',
  unit: 's',
  ...(await inTurns(runs, ours, twoPasses)),
  reach: { atMost: 0.4 },
  remarks: [
    {
      what: 'largest deviation from the target',
      value: Math.max(...misses),
      unit: 'LU',
      reach: { atMost: 0.5 },
    },
    { what: 'highest true peak', value: Math.max(...peaks), unit: 'dBTP', reach: { atMost: -1 } },
  ],
});
await bench.close();
