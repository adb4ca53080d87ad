/**
 * Clips of a long source in one job, fetched once: against the larger of one decode of it and the sum of the clips' encodes over the cores, which nothing can go below.
 *
 *     node bench/clips.ts [--minutes 60] [--clips 32] [--seconds 60] [--runs 3]
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { serveVideos } from 'soundpost-testing/video-server';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { audioOf, inputFolder } from './measuring/inputs.ts';
import { openJobBench, rawFfmpeg } from './measuring/jobs.ts';

const { minutes, clips, seconds, runs } = askedFor({ minutes: 60, clips: 32, seconds: 60, runs: 3 });

const web = await serveVideos(inputFolder);
const bench = await openJobBench({ allow: web.allow });
const source = await audioOf(minutes, 'm4a', ['-c:a', 'aac', '-b:a', '128k']);
const wav = await audioOf((clips * seconds) / 60, 'wav', ['-c:a', 'pcm_s16le']);
const cores = availableParallelism();
const apart = (minutes * 60 - seconds) / (clips - 1);

const outputs = Array.from({ length: clips }, (_, nth) => ({
  ...{ name: `clip-${nth}`, format: 'mp3', bitrate: '192k' },
  ...{ start: nth * apart, end: nth * apart + seconds },
}));

async function ours(): Promise<number> {
  const asked = web.requests.length;
  const took = await secondsOf(async () => bench.discard(await bench.run({ url: web.url(source) }, outputs)));
  const fetched = web.requests.length - asked;
  if (fetched !== 1) throw new Error(`the source was fetched ${fetched} times`);
  return took;
}

async function least(): Promise<number> {
  const decode = await secondsOf(() => rawFfmpeg(join(inputFolder, source), '-f', 'null', '-'));
  const mp3 = ['-c:a', 'libmp3lame', '-b:a', '192k', join(bench.folder, 'all.mp3')];
  const encodes = await secondsOf(() => rawFfmpeg(join(inputFolder, wav), ...mp3));
  return Math.max(decode, encodes / cores);
}

printRow({
  what: `${clips} clips of ${seconds} s of ${minutes} min in one job, ${cores} cores`,
  against: 'the larger of one decode and the encodes over the cores',
  unit: 's',
  ...(await inTurns(runs, ours, least)),
  reach: { atMost: 1.1 },
});
await bench.close();
await web.close();
