/**
 * An hour at an address on this machine, from the request to the stored result, against raw ffmpeg on the same address.
 *
 *     node bench/long-loopback.ts [--minutes 60] [--runs 5]
 */
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { videoOf } from './measuring/inputs.ts';
import { openJobBench, rawFfmpeg } from './measuring/jobs.ts';
import { openLink } from './measuring/links.ts';

const { minutes, runs } = askedFor({ minutes: 60, runs: 5 });
const name = await videoOf(minutes);
const link = await openLink({ severalRanges: true, bitsPerSecond: 0, roundTripMs: 0 });
const bench = await openJobBench({ allow: link.allow, encodings: availableParallelism() });

const rows = [
  {
    what: 'm4a (copied)',
    output: { format: 'm4a' },
    raw: ['-c:a', 'copy', '-movflags', '+faststart'],
    atMost: 2,
  },
  { what: 'flac', output: { format: 'flac' }, raw: ['-c:a', 'flac', '-sample_fmt', 's16'], atMost: 1.05 },
  {
    what: 'mp3 192k',
    output: { format: 'mp3', bitrate: '192k' },
    raw: ['-c:a', 'libmp3lame', '-b:a', '192k'],
    atMost: 1.05,
  },
  {
    what: 'opus 128k',
    output: { format: 'opus', bitrate: '128k' },
    raw: ['-c:a', 'libopus', '-b:a', '128k'],
    atMost: 1.05,
  },
] as const;

for (const { what, output, raw, atMost } of rows) {
  const rawFile = join(bench.folder, `raw.${output.format}`);
  const figures = await inTurns(
    runs,
    async () => {
      const begunAt = performance.now();
      const result = await bench.run({ url: link.url(name) }, output);
      const seconds = (performance.now() - begunAt) / 1000;
      await bench.discard(result);
      return seconds;
    },
    async () => {
      const seconds = await secondsOf(() => rawFfmpeg(link.url(name), ...raw, rawFile));
      await rm(rawFile);
      return seconds;
    },
    // The first copy would otherwise read the video from the disk, and all after it from memory.
    { warmUp: output.format === 'm4a' },
  );
  printRow({
    what: `${minutes}-min 720p MP4 at a URL on loopback → ${what}, idle cores`,
    against: 'raw ffmpeg on the same URL',
    unit: 's',
    ...figures,
    reach: { atMost },
  });
}
await Promise.all([link.close(), bench.close()]);
