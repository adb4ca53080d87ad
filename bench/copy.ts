/**
 * A matching track is copied: the media stage of a job on a local file against encoding the same track.
 *
 *     node bench/copy.ts [--minutes 60] [--runs 5]
 */
import { join } from 'node:path';
import { extractAudio } from 'soundpost-media/extract';
import { planOutput } from 'soundpost-media/plan';
import { probe } from 'soundpost-media/probe';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { audioOf, inputFolder, videoOf } from './measuring/inputs.ts';
import { openJobBench, rawFfmpeg } from './measuring/jobs.ts';

const { minutes, runs } = askedFor({ minutes: 60, runs: 5 });
const bench = await openJobBench();
const { tools } = bench.services;
const { signal } = new AbortController();
const rows = [
  {
    what: 'AAC → m4a',
    format: 'm4a',
    input: await videoOf(minutes),
    encoder: ['-c:a', 'aac', '-b:a', '192k'],
  },
  {
    what: 'Opus → opus',
    format: 'opus',
    input: await audioOf(minutes, 'webm', ['-c:a', 'libopus', '-b:a', '96k']),
    encoder: ['-c:a', 'libopus', '-b:a', '128k'],
  },
] as const;

for (const { what, format, input, encoder } of rows) {
  const file = join(inputFolder, input);
  const output = {
    format,
    copy: 'auto',
    normalize: false,
    preserveMetadata: true,
  } as const;
  const ours = () =>
    secondsOf(async () => {
      const probed = await probe(tools, file, { signal });
      const {
        files: [made],
      } = await extractAudio({
        tools,
        input: file,
        probe: probed,
        outputs: [{ plan: planOutput(output, probed), path: join(bench.folder, 'output') }],
        signal,
        maxAudioSeconds: 6 * 3600,
      });
      if (!made?.copied) throw new Error(`${input} was not copied`);
    });
  const theirs = () => secondsOf(() => rawFfmpeg(file, ...encoder, join(bench.folder, `raw.${format}`)));
  printRow({
    what: `${what}, ${minutes} min, from a local file, without API and queue`,
    against: 'raw ffmpeg, which encodes',
    unit: 's',
    ...(await inTurns(runs, ours, theirs, { warmUp: false })),
    reach: { atMost: 0.02 },
  });
}
await bench.close();
