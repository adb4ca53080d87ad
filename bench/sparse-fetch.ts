/**
 * A job from an address, download to result, against downloading the whole file and running ffmpeg on it, on a link of
 * 20 Mbit/s and 50 ms; and over loopback against ffmpeg on the local file.
 *
 *     node bench/sparse-fetch.ts [--minutes 10] [--runs 5] [--row link|loopback]
 *
 * Prints a line of JSON and a row of a table for each comparison. Medians; every figure of a comparison is from the same runs.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { detectSandbox } from '../src/media/detect-sandbox.ts';
import { ExtractPayload } from '../src/queue/payloads.ts';
import { runExtraction } from '../src/worker/extraction.ts';
import { makeSurroundings, type Surroundings } from '../test/worker/worker-fixture.ts';
import { inputFolder, videoOf } from './inputs.ts';
import type { LinkCount, LinkReady, LinkSettings } from './link.ts';

const run = promisify(execFile);
const GIB = 1024 ** 3;
const { values: asked } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    runs: { type: 'string', default: '5' },
    row: { type: 'string' },
  },
});
const minutes = Number(asked.minutes);
const runs = Number(asked.runs);

interface Link {
  readonly url: string;
  readonly allow: string;
  count(): Promise<LinkCount>;
  close(): Promise<void>;
}

async function openLink(name: string, settings: Omit<LinkSettings, 'folder'>): Promise<Link> {
  const worker = new Worker(new URL('./link.ts', import.meta.url), {
    workerData: { ...settings, folder: inputFolder } satisfies LinkSettings,
  });
  const [{ allow }] = (await once(worker, 'message')) as [LinkReady];
  return {
    url: `http://${allow}/${name}`,
    allow,
    async count() {
      worker.postMessage('count');
      const [count] = (await once(worker, 'message')) as [LinkCount];
      return count;
    },
    async close() {
      await worker.terminate();
    },
  };
}

async function surroundingsFor(links: readonly Link[]): Promise<Surroundings> {
  const around = await makeSurroundings(links.map(({ allow }) => allow).join(','));
  const sandbox = await detectSandbox(around.services.tools);
  const services = {
    ...around.services,
    tools: { ...around.services.tools, sandbox },
    limits: { ...around.services.limits, maxInputBytes: 8 * GIB, maxAudioSeconds: 4 * 3600 },
  };
  return { ...around, services };
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const begunAt = performance.now();
  await work();
  return (performance.now() - begunAt) / 1000;
}

async function runJob(around: Surroundings, url: string, output: object): Promise<void> {
  const payload = ExtractPayload.parse({
    version: 1,
    tenant: 'benches1',
    source: { type: 'url', url },
    output,
    options: { priority: 'normal' },
    batchId: null,
    retryOf: null,
  });
  const { signal } = new AbortController();
  const jobId = `job_${randomBytes(8).toString('hex')}`;
  const job = { jobId, attemptToken: 'bench', order: 0, signal, report: () => undefined, payload };
  const { outputFile } = await runExtraction(job, around.services, around.workspaces);
  await around.storage.remove(outputFile.storageKey);
}

const raw = {
  mp3: (file: string, folder: string) =>
    ffmpeg(file, '-c:a', 'libmp3lame', '-b:a', '192k', join(folder, 'raw.mp3')),
  m4a: (file: string, folder: string) => ffmpeg(file, '-c:a', 'copy', join(folder, 'raw.m4a')),
};

function ffmpeg(file: string, ...output: string[]): Promise<unknown> {
  return run('ffmpeg', ['-nostdin', '-v', 'error', '-y', '-i', file, '-vn', ...output]);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? 0)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

interface Figures {
  readonly ours: number[];
  readonly theirs: number[];
  readonly bytes: number[];
}

async function compareOnLink(): Promise<void> {
  const name = await videoOf(minutes);
  const { size } = await stat(join(inputFolder, name));
  const shape = { bitsPerSecond: 20e6, roundTripMs: 50 };
  const several = await openLink(name, { ...shape, severalRanges: true });
  const single = await openLink(name, { ...shape, severalRanges: false });
  const around = await surroundingsFor([several, single]);
  const jobs = [
    { what: 'm4a copied', link: several, output: { format: 'm4a' }, raw: raw.m4a, reach: 0.05 },
    { what: 'mp3 192k', link: several, output: { format: 'mp3', bitrate: '192k' }, raw: raw.mp3, reach: 0.1 },
    {
      what: 'm4a copied, one range a request',
      link: single,
      output: { format: 'm4a' },
      raw: raw.m4a,
      reach: null,
    },
  ];
  const figures = jobs.map((): Figures => ({ ours: [], theirs: [], bytes: [] }));
  for (let nth = 0; nth < runs; nth += 1) {
    const folder = await mkdtemp(join(around.folder, 'whole-'));
    const file = join(folder, 'source');
    const downloading = await secondsOf(() =>
      around.outbound.download({ url: several.url, file, maxBytes: 8 * GIB }),
    );
    for (const [index, job] of jobs.entries()) {
      figures[index]?.theirs.push(downloading + (await secondsOf(() => job.raw(file, folder))));
      const before = (await job.link.count()).bytes;
      figures[index]?.ours.push(await secondsOf(() => runJob(around, job.link.url, job.output)));
      figures[index]?.bytes.push((await job.link.count()).bytes - before);
    }
    await rm(folder, { recursive: true });
  }
  for (const [index, { what, link, reach }] of jobs.entries()) {
    const { ours = [], theirs = [], bytes = [] } = figures[index] ?? {};
    const { peakConnections } = await link.count();
    const share = median(bytes) / size;
    const ratio = median(ours.map((seconds, nth) => seconds / (theirs[nth] ?? 1)));
    report(`${minutes} min, 20 Mbit/s, 50 ms → ${what}`, {
      ours,
      theirs,
      ratio,
      reach,
      share,
      peakConnections,
    });
  }
  await Promise.all([several.close(), single.close(), around.close()]);
}

async function compareOverLoopback(): Promise<void> {
  const name = await videoOf(minutes);
  const { size } = await stat(join(inputFolder, name));
  const link = await openLink(name, { severalRanges: true, bitsPerSecond: 0, roundTripMs: 0 });
  const around = await surroundingsFor([link]);
  const ours: number[] = [];
  const theirs: number[] = [];
  const bytes: number[] = [];
  for (let nth = 0; nth < runs; nth += 1) {
    theirs.push(await secondsOf(() => raw.mp3(join(inputFolder, name), around.folder)));
    const before = (await link.count()).bytes;
    ours.push(await secondsOf(() => runJob(around, link.url, { format: 'mp3', bitrate: '192k' })));
    bytes.push((await link.count()).bytes - before);
  }
  const { peakConnections } = await link.count();
  const ratio = median(ours.map((seconds, nth) => seconds / (theirs[nth] ?? 1)));
  const share = median(bytes) / size;
  report(`${minutes} min over loopback → mp3 192k`, {
    ours,
    theirs,
    ratio,
    reach: 1.05,
    share,
    peakConnections,
  });
  await Promise.all([link.close(), around.close()]);
}

interface Report {
  readonly ours: readonly number[];
  readonly theirs: readonly number[];
  readonly ratio: number;
  readonly reach: number | null;
  /** Of the file's bytes, what went over the link. */
  readonly share: number;
  readonly peakConnections: number;
}

function report(row: string, { ours, theirs, ratio, reach, share, peakConnections }: Report): void {
  const rounded = (values: readonly number[]) => values.map((value) => Number(value.toFixed(2)));
  print(
    JSON.stringify({
      ...{ bench: 'sparse-fetch', row, runs, ratio: Number(ratio.toFixed(4)), reach },
      ...{ ours: rounded(ours), theirs: rounded(theirs), share: Number(share.toFixed(4)), peakConnections },
    }),
  );
  const cells = [
    ...[
      row,
      `${median(theirs).toFixed(1)} s`,
      `${median(ours).toFixed(1)} s`,
      ratio.toFixed(3),
      reach ?? '–',
    ],
    ...[`${(share * 100).toFixed(1)} %`, peakConnections],
  ];
  print(`| ${cells.join(' | ')} |`);
}

if (asked.row !== 'loopback') await compareOnLink();
if (asked.row !== 'link') await compareOverLoopback();
