/**
 * A job from an address on this machine, download to stored result, against raw ffmpeg on the local file.
 *
 *     node bench/fetch-over-loopback.ts [--minutes 60] [--runs 5]
 */
import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { askedFor, inTurns, median, printRow, secondsOf } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { openJobBench, rawFfmpeg } from './measuring/jobs.ts';
import { openLink } from './measuring/links.ts';

const { minutes, runs } = askedFor({ minutes: 60, runs: 5 });
const name = await videoOf(minutes);
const { size } = await stat(join(inputFolder, name));
const link = await openLink({ severalRanges: true, bitsPerSecond: 0, roundTripMs: 0 });
const bench = await openJobBench({ allow: link.allow, encodings: availableParallelism() });

const shares: number[] = [];
const figures = await inTurns(
  runs,
  async () => {
    const before = (await link.count()).bytes;
    const begunAt = performance.now();
    const result = await bench.run({ url: link.url(name) }, { format: 'mp3', bitrate: '192k' });
    const seconds = (performance.now() - begunAt) / 1000;
    shares.push(((await link.count()).bytes - before) / size);
    await bench.discard(result);
    return seconds;
  },
  () =>
    secondsOf(() =>
      rawFfmpeg(join(inputFolder, name), '-c:a', 'libmp3lame', '-b:a', '192k', join(bench.folder, 'raw.mp3')),
    ),
  { warmUp: false },
);
const { peakConnections } = await link.count();
printRow({
  what: `${minutes}-min 720p MP4 at a URL on loopback → mp3 192k, idle cores`,
  against: 'raw ffmpeg on the local file',
  unit: 's',
  ...figures,
  reach: { atMost: 1.05 },
  remarks: [
    { what: 'share of the file that is downloaded', value: median(shares) * 100, unit: '%' },
    { what: 'connections', value: peakConnections, unit: '', reach: { atMost: 16 } },
  ],
});
await Promise.all([link.close(), bench.close()]);
