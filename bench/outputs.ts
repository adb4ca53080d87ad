/**
 * Several outputs of one job against as many jobs: mp3, opus and a waveform of one source at an address, on one core in one decode, and on two idle cores. Each job
 * fetches the source once. And how much more memory the process that runs the job takes than for a minute, by the length of the source; ffmpeg's processes do not
 * count.
 *
 *     node bench/outputs.ts [--minutes 10] [--longMinutes 60] [--runs 5]
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { serveVideos } from 'soundpost-testing/video-server';
import { askedFor, inTurns, printRow } from './measuring/comparison.ts';
import { audioOf, inputFolder } from './measuring/inputs.ts';
import { openJobBench } from './measuring/jobs.ts';

const { minutes, longMinutes, runs } = askedFor({ minutes: 10, longMinutes: 60, runs: 5 });

const MP3 = { name: 'full', format: 'mp3', bitrate: '192k' };
const OPUS = { name: 'small', format: 'opus', bitrate: '96k' };
const PEAKS = { name: 'peaks', format: 'waveform' };
/** The first output is one of sound; a copy takes no time. */
const COPY = { name: 'copy', format: 'm4a' };

const ALL = [MP3, OPUS, { ...PEAKS, pixelsPerSecond: 100 }];

const WARM_UP_MINUTES = 1;
/** As of a put: whatever the length (test/worker/destination-memory.all-long.test.ts). */
const MOST_GROWN_MIB = 32;

const soundOf = (length: number): Promise<string> => audioOf(length, 'm4a', ['-c:a', 'aac', '-b:a', '128k']);
const web = await serveVideos(inputFolder);

/** @returns the seconds from the beginning of a job to its end. @throws Error when it fetched the source more than once */
async function secondsOfJob(
  bench: Awaited<ReturnType<typeof openJobBench>>,
  source: string,
  outputs: object[],
) {
  const asked = web.requests.length;
  const begunAt = performance.now();
  const result = await bench.run({ url: web.url(source) }, outputs);
  const took = (performance.now() - begunAt) / 1000;
  await bench.discard(result);
  const fetched = web.requests.length - asked;
  if (fetched !== 1) throw new Error(`the source was fetched ${fetched} times`);
  return took;
}

async function compare(encodings: 1 | 2): Promise<void> {
  const bench = await openJobBench({ allow: web.allow, encodings });
  const source = await soundOf(minutes);
  const alone = async (outputs: object[]): Promise<number> => secondsOfJob(bench, source, outputs);
  printRow({
    what: `mp3, opus and a waveform of ${minutes} min in one job, ${encodings === 1 ? 'one core' : 'two idle cores'}`,
    against: 'three jobs, one after the other',
    unit: 's',
    ...(await inTurns(
      runs,
      () => alone([MP3, OPUS, PEAKS]),
      async () => (await alone([MP3])) + (await alone([OPUS])) + (await alone([COPY, PEAKS])),
    )),
    reach: { atMost: 1.05 },
  });
  await bench.close();
}

/** In a process of its own, which has forgotten no peak of a run before. @returns MiB beyond what the warm-up took */
async function grownMib(length: number): Promise<number> {
  const [warmUp, source] = await Promise.all([soundOf(WARM_UP_MINUTES), soundOf(length)]);
  const child = join(import.meta.dirname, 'measuring/outputs-memory.ts');
  const args = ['--max-semi-space-size=4', child, JSON.stringify(ALL), warmUp, source];
  return Number((await promisify(execFile)(process.execPath, args)).stdout);
}

async function measureMemory(): Promise<void> {
  for (const length of [minutes, longMinutes]) {
    const ours: number[] = [];
    for (let nth = 0; nth < runs; nth += 1) ours.push(await grownMib(length));
    printRow({
      what: `memory that mp3, opus and a waveform of ${length} min take beyond those of ${WARM_UP_MINUTES} min`,
      against: null,
      unit: 'MiB',
      ...{ ours, theirs: [], reach: { atMost: MOST_GROWN_MIB } },
    });
  }
}

await compare(1);
await compare(2);
await measureMemory();
await web.close();
