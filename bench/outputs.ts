/**
 * Several outputs of one job against as many jobs: mp3, opus and a waveform of one source at an address, on one core in one decode, and on two idle cores. Each job
 * fetches the source once. And what the process that runs the job holds in memory, by the length of the source; ffmpeg's processes do not count.
 *
 *     node bench/outputs.ts [--minutes 10] [--longMinutes 60] [--runs 5]
 */
import { join } from 'node:path';
import { setInterval as each } from 'node:timers/promises';
import { serveVideos } from '../test/video-server.ts';
import { askedFor, inTurns, printRow } from './measuring/comparison.ts';
import { audioOf, inputFolder } from './measuring/inputs.ts';
import { openJobBench } from './measuring/jobs.ts';

const { minutes, longMinutes, runs } = askedFor({ minutes: 10, longMinutes: 60, runs: 5 });

const MP3 = { name: 'full', format: 'mp3', bitrate: '192k' };
const OPUS = { name: 'small', format: 'opus', bitrate: '96k' };
const PEAKS = { name: 'peaks', format: 'waveform' };
/** The first output is one of sound; a copy takes no time. */
const COPY = { name: 'copy', format: 'm4a' };

const SAMPLED_EACH_MS = 50;

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

async function measureMemory(): Promise<void> {
  const bench = await openJobBench({ allow: web.allow, encodings: 1 });
  const most = async (length: number): Promise<number> => {
    // Not by the server, which would hold the file in this process.
    const upload = await bench.upload(join(inputFolder, await soundOf(length)));
    const done = new AbortController();
    let highest = 0;
    const sampling = (async () => {
      for await (const _ of each(SAMPLED_EACH_MS, undefined, { signal: done.signal })) {
        highest = Math.max(highest, process.memoryUsage.rss());
      }
    })().catch(() => undefined);
    await bench.discard(await bench.run({ upload }, [MP3, OPUS, { ...PEAKS, pixelsPerSecond: 100 }]));
    done.abort();
    await sampling;
    return highest / 1024 ** 2;
  };
  printRow({
    what: `memory while mp3, opus and a waveform are made of ${longMinutes} min`,
    against: `of ${minutes} min`,
    unit: 'MiB',
    ...(await inTurns(
      runs,
      () => most(longMinutes),
      () => most(minutes),
    )),
    reach: { atMost: 1.1 },
  });
  await bench.close();
}

await compare(1);
await compare(2);
await measureMemory();
await web.close();
