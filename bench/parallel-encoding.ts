/**
 * A long output over two idle cores: a whole job, against one ffmpeg that encodes the same sound.
 *
 *     node bench/parallel-encoding.ts [--minutes 60] [--runs 5]
 */
import { join } from 'node:path';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { openJobBench, rawFfmpeg } from './measuring/jobs.ts';

const { minutes, runs } = askedFor({ minutes: 60, runs: 5 });
const file = join(inputFolder, await videoOf(minutes));
const bench = await openJobBench({ encodings: 2 });
const upload = await bench.upload(file);
const SAMPLE_RATE = 48_000;
const rows = [
  { format: 'mp3', bitrate: '192k', encoder: ['-c:a', 'libmp3lame', '-b:a', '192k'] },
  { format: 'opus', bitrate: '128k', encoder: ['-c:a', 'libopus', '-b:a', '128k'] },
] as const;

/** Of one channel, decoded by ffmpeg. */
async function samplesIn(path: string): Promise<number> {
  const said = await rawFfmpeg(path, '-v', 'verbose', '-f', 'null', '-');
  return Number(/frames decoded.*? \((\d+) samples\)/.exec(said)?.[1]);
}

for (const { format, bitrate, encoder } of rows) {
  const raw = join(bench.folder, `raw.${format}`);
  let extra = 0;
  async function ours(): Promise<number> {
    const begunAt = performance.now();
    const result = await bench.run({ upload }, { format, bitrate, copy: 'never' });
    const seconds = (performance.now() - begunAt) / 1000;
    const stored = await bench.storage.localCopy(result.outputFile?.storageKey ?? '', bench.folder);
    extra = Math.max(
      extra,
      Math.abs((await samplesIn(stored)) - Math.round((result.outputFile?.duration ?? 0) * SAMPLE_RATE)),
    );
    await bench.discard(result);
    return seconds;
  }
  const theirs = () => secondsOf(() => rawFfmpeg(file, ...encoder, raw));
  printRow({
    what: `${minutes} min → ${format} ${bitrate}, two idle cores`,
    against: 'one ffmpeg',
    unit: 's',
    ...(await inTurns(runs, ours, theirs, { warmUp: false })),
    reach: { atMost: 0.65 },
    remarks: [
      {
        what: 'difference between samples decoded and encoded',
        value: extra,
        unit: '',
        reach: { atMost: 0 },
      },
    ],
  });
}
await bench.close();
