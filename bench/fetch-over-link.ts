/**
 * A job from an address, download to stored result, on a link of 20 Mbit/s and 50 ms, against downloading the whole file and running raw ffmpeg on it.
 *
 *     node bench/fetch-over-link.ts [--minutes 60] [--runs 5]
 *
 * The whole downloads, 13 minutes each for an hour of video, run side by side over links of their own: the link bounds them, not the machine.
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
const single = await openLink({ ...shape, severalRanges: false });
const wholes = await Promise.all(
  Array.from({ length: runs }, () => openLink({ ...shape, severalRanges: true })),
);
const bench = await openJobBench({ allow: [several, single, ...wholes].map(({ allow }) => allow).join(',') });

const raw = {
  m4a: ['-c:a', 'copy', join(bench.folder, 'raw.m4a')],
  mp3: ['-c:a', 'libmp3lame', '-b:a', '192k', join(bench.folder, 'raw.mp3')],
};
const jobs = [
  { what: 'm4a (copied)', link: several, output: { format: 'm4a' }, raw: raw.m4a, reach: { atMost: 0.05 } },
  {
    what: 'mp3 192k',
    link: several,
    output: { format: 'mp3', bitrate: '192k' },
    raw: raw.mp3,
    reach: { atMost: 0.1 },
  },
  {
    what: 'm4a (copied), a server that sends one range an answer',
    link: single,
    output: { format: 'm4a' },
    raw: raw.m4a,
    reach: null,
  },
];
const figures = jobs.map(() => ({ ours: [] as number[], theirs: [] as number[], shares: [] as number[] }));

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
for (const downloading of downloads) {
  for (const [index, job] of jobs.entries()) {
    const figure = figures[index];
    figure?.theirs.push(downloading + (await secondsOf(() => rawFfmpeg(file, ...job.raw))));
    const before = (await job.link.count()).bytes;
    const begunAt = performance.now();
    const result = await bench.run({ url: job.link.url(name) }, job.output);
    figure?.ours.push((performance.now() - begunAt) / 1000);
    figure?.shares.push(((await job.link.count()).bytes - before) / size);
    await bench.discard(result);
  }
}
for (const [index, { what, link, reach }] of jobs.entries()) {
  const { ours = [], theirs = [], shares = [] } = figures[index] ?? {};
  const { peakConnections } = await link.count();
  const isPromised = link === several;
  printRow({
    what: `${minutes}-min 720p MP4 at a URL over 20 Mbit/s, 50 ms → ${what}`,
    against: 'full download, then raw ffmpeg',
    unit: 's',
    ours,
    theirs,
    reach,
    remarks: [
      {
        what: 'bytes of the file',
        value: median(shares) * 100,
        unit: '%',
        reach: isPromised ? { atMost: 5 } : null,
      },
      { what: 'connections', value: peakConnections, unit: '', reach: { atMost: 16 } },
    ],
  });
}
await Promise.all([several, single, ...wholes, bench].map((open) => open.close()));
