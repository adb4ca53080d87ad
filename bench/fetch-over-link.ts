/**
 * A job from an address, download to stored result, on a link of 20 Mbit/s and 50 ms, against downloading the whole file and running raw ffmpeg on it.
 *
 *     node bench/fetch-over-link.ts [--minutes 60] [--runs 5]
 *
 * The whole downloads, 13 minutes each for an hour of video, run side by side at the end, over links of their own: the link bounds them, not the machine.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { askedFor, median, printRow, secondsOf } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { openJobBench, rawFfmpeg } from './measuring/jobs.ts';
import { openLink } from './measuring/links.ts';

const { minutes, runs } = askedFor({ minutes: 60, runs: 5 });
const name = await videoOf(minutes);
const file = join(inputFolder, name);
const { size } = await stat(file);
const shape = { bitsPerSecond: 20e6, roundTripMs: 50 };
const several = await openLink({ ...shape, severalRanges: true });
const wholes = await Promise.all(
  Array.from({ length: runs }, () => openLink({ ...shape, severalRanges: true })),
);
const bench = await openJobBench({ allow: [several, ...wholes].map(({ allow }) => allow).join(',') });

const raw = {
  m4a: ['-c:a', 'copy', join(bench.folder, 'raw.m4a')],
  mp3: ['-c:a', 'libmp3lame', '-b:a', '192k', join(bench.folder, 'raw.mp3')],
};
const jobs = [
  { what: 'm4a (copied)', output: { format: 'm4a' }, raw: raw.m4a, reach: { atMost: 0.05 } },
  {
    what: 'mp3 192k',
    output: { format: 'mp3', bitrate: '192k' },
    raw: raw.mp3,
    reach: { atMost: 0.1 },
  },
];
const figures = jobs.map(() => ({ ours: [] as number[], raw: [] as number[], shares: [] as number[] }));

for (let nth = 0; nth < runs; nth += 1) {
  for (const [index, { output, raw: command }] of jobs.entries()) {
    const figure = figures[index];
    figure?.raw.push(await secondsOf(() => rawFfmpeg(file, ...command)));
    const before = (await several.count()).bytes;
    const begunAt = performance.now();
    const result = await bench.run({ url: several.url(name) }, output);
    figure?.ours.push((performance.now() - begunAt) / 1000);
    figure?.shares.push(((await several.count()).bytes - before) / size);
    await bench.discard(result);
  }
}
const downloads = await Promise.all(
  wholes.map((link, nth) =>
    secondsOf(() =>
      bench.services.outbound.download({
        url: link.url(name),
        file: join(bench.folder, `whole-${nth}`),
        maxBytes: bench.services.limits.maxInputBytes,
      }),
    ),
  ),
);
const { peakConnections } = await several.count();
for (const [index, { what, reach }] of jobs.entries()) {
  const { ours = [], raw: encodings = [], shares = [] } = figures[index] ?? {};
  printRow({
    what: `${minutes}-min 720p MP4 at a URL over a link of 20 Mbit/s and 50 ms → ${what}`,
    against: 'full download, then raw ffmpeg',
    unit: 's',
    ours,
    theirs: encodings.map((seconds, nth) => seconds + (downloads[nth] ?? Number.NaN)),
    reach,
    remarks: [
      {
        what: 'share of the file that is downloaded',
        value: median(shares) * 100,
        unit: '%',
        reach: { atMost: 5 },
      },
      { what: 'connections', value: peakConnections, unit: '', reach: { atMost: 16 } },
    ],
  });
}
await Promise.all([several, ...wholes, bench].map((open) => open.close()));
