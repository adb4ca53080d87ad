/**
 * Several outputs of one job against as many jobs: mp3, opus and a waveform of one source at an address, on one core in one decode, and on two idle cores. Each job
 * fetches the source once. 32 clips of a long source on two idle cores, against encoding its sound once, divided by two. And how much more memory the process that runs the job takes than for a minute, by the length of the source; ffmpeg's processes do not
 * count.
 *
 *     node bench/outputs.ts [--minutes 10] [--longMinutes 60] [--runs 5]
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { mediaTools } from 'soundpost-testing/media-tools';
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

const CLIPS = 32;
const CORES = 2;

async function compareClips(): Promise<void> {
  const bench = await openJobBench({ allow: web.allow, encodings: CORES });
  const source = await soundOf(longMinutes);
  const seconds = (longMinutes * 60) / CLIPS;
  const clips = Array.from({ length: CLIPS }, (_, nth) => {
    return { name: `clip-${nth}`, format: 'mp3', start: nth * seconds, end: (nth + 1) * seconds };
  });
  const wav = await audioOf(longMinutes, 'wav', ['-c:a', 'pcm_s16le']);
  const encode = ['-v', 'error', '-threads', '1', '-i', join(inputFolder, wav), '-c:a', 'libmp3lame'];
  printRow({
    what: `${CLIPS} clips of ${longMinutes} min, which follow each other, on ${CORES} idle cores`,
    against: `encoding the same sound once, divided by ${CORES}`,
    unit: 's',
    ...(await inTurns(
      runs,
      () => secondsOfJob(bench, source, clips),
      async () => {
        const begunAt = performance.now();
        await promisify(execFile)(mediaTools.ffmpegPath, [...encode, '-b:a', '192k', '-f', 'null', '-']);
        return (performance.now() - begunAt) / 1000 / CORES;
      },
    )),
    // Of two cores one decodes half of the source, the other one all of it.
    reach: { atMost: 1.25 },
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
await compareClips();
await measureMemory();
await web.close();
