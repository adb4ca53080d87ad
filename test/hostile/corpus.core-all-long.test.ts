/**
 * Hostile files on the whole way through the media layer: each ends completed, INVALID_VIDEO or EXTRACTION_FAILED, in
 * time, in its place, with its memory, and reads nothing but itself. 500 files; the core takes every 40th of 500 made of fewer codecs, `npm run hostile` 5,000.
 */
// @module-tag quick-ffmpeg
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allCodecs, fewCodecs } from 'soundpost-testing/base-files';
import { byRun, currentRun } from 'soundpost-testing/by-run';
import { tools } from 'soundpost-testing/extracting';
import { ffmpeg } from 'soundpost-testing/oracle';
import { programOf, startedFromNow } from 'soundpost-testing/processes';
import { seeded } from 'soundpost-testing/random';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { corpus } from './corpus.ts';
import type { HostileFile } from './hostile-file.ts';
import { MemoryWatch } from './memory-watch.ts';
import { type Surroundings, type Trial, tryFile } from './trial.ts';

/** Of how many files each how manyth is tried. */
const { made, each, codecs } = byRun({
  core: { made: 500, each: 100, codecs: fewCodecs },
  all: { made: 500, each: 1, codecs: allCodecs },
  long: { made: 5000, each: 1, codecs: allCodecs },
});
const COUNT = Math.ceil(made / each);
const PATIENCE_MS = 120_000 + COUNT * 2000;
const AT_A_TIME = 2;
const MAX_SECONDS = 30;
const MAX_MEMORY_BYTES = 512 * 1024 * 1024;
const SECRET = 'CANARY-5d41402abc4b2a76';

const OUTPUTS: readonly object[] = [
  { format: 'mp3' },
  { format: 'mp3', preserveMetadata: true },
  { format: 'wav' },
  { format: 'flac' },
  { format: 'm4a' },
  { format: 'voice' },
  { format: 'aac', bitrate: '128k' },
  { format: 'ogg', start: 0.1, end: 0.4 },
  { format: 'mp3', normalize: true },
];

let root = '';
let requests = 0;
let trials: readonly Trial[] = [];
let before = '';
const started = startedFromNow();
let watch: MemoryWatch | undefined;
const server = createServer((_request, response) => {
  requests += 1;
  response.end();
});

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'soundpost-hostile-'));
  const outside = join(root, 'outside');
  const folder = join(root, 'work');
  await Promise.all([mkdir(outside), mkdir(folder)]);
  const canary = join(outside, 'canary.ts');
  await ffmpeg(
    ...['-v', 'error', '-f', 'lavfi', '-t', '2', '-i', 'sine', '-metadata', `service_name=${SECRET}`],
    ...['-metadata', `title=${SECRET}`, canary],
  );
  await writeFile(join(outside, 'secret.txt'), SECRET);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const files = (await corpus({ count: made, codecs, canary, url })).filter((_, nth) => nth % each === 0);
  before = await snapshot(root);
  watch = new MemoryWatch();
  trials = await tryAll(files, { tools, folder, canary, secret: SECRET });
}, PATIENCE_MS);

afterAll(async () => {
  watch?.stop();
  server.close();
  await rm(root, { recursive: true, force: true });
  report();
});

async function tryAll(files: readonly HostileFile[], around: Surroundings): Promise<Trial[]> {
  const random = seeded(1);
  const waiting = files.map((file) => ({ file, output: random.pick(OUTPUTS) }));
  const ended: Trial[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      ended.push(await tryFile(next.file, next.output, around));
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return ended;
}

/** Every path under a folder, with size and time of the last change. */
async function snapshot(folder: string): Promise<string> {
  const names = (await readdir(folder, { recursive: true })).sort();
  const lines = await Promise.all(
    names.map(async (name) => {
      const { size, mtimeMs, isDirectory } = await stat(join(folder, name)).then((stats) => ({
        size: stats.size,
        mtimeMs: stats.mtimeMs,
        isDirectory: stats.isDirectory(),
      }));
      return isDirectory ? name : `${name} ${size} ${mtimeMs}`;
    }),
  );
  return lines.join('\n');
}

function report(): void {
  const rows = [...Map.groupBy(trials, ({ file }) => file.family)].map(([family, of]) => {
    const ends = Map.groupBy(of, ({ job }) => job);
    const counts = [...ends].map(([end, { length }]) => `${length} ${end}`).sort();
    return `  ${family.padEnd(9)} ${String(of.length).padStart(5)}: ${counts.join(', ')}`;
  });
  const slowest = trials.reduce((worst, trial) => Math.max(worst, trial.seconds), 0);
  const good = trials.filter(({ faults }) => faults.length === 0).length;
  process.stdout.write(
    [
      `hostile files: ${good}/${trials.length} as they should; sandbox ${tools.sandbox?.level}`,
      ...rows,
      `  slowest ${slowest.toFixed(1)} s, peak memory of a child ${Math.round((watch?.peakBytes ?? 0) / 1024 ** 2)} MiB (${watch?.peakProgram}), ${requests} requests`,
      '',
    ].join('\n'),
  );
}

describe(`of ${COUNT} hostile files`, () => {
  it('each ends as it should and leaves nothing behind', () => {
    expect(trials).toHaveLength(COUNT);
    const faulty = trials.filter(({ faults }) => faults.length > 0);
    expect(faulty.map(({ file, faults }) => `${file.name}: ${faults.join('; ')}`)).toEqual([]);
  });

  // Beside other tests a machine may be slower than that.
  it.runIf(currentRun === 'long')(`each ends within ${MAX_SECONDS} s`, () => {
    expect(trials.filter(({ seconds }) => seconds >= MAX_SECONDS).map(({ file }) => file.name)).toEqual([]);
  });

  it('none takes more than 512 MiB', () => {
    expect(watch?.peakBytes).toBeGreaterThan(0);
    expect(watch?.peakBytes).toBeLessThanOrEqual(MAX_MEMORY_BYTES);
  });

  it('none writes outside its workspace', async () => {
    expect(await snapshot(root)).toBe(before);
    expect(await readFile(join(root, 'outside/secret.txt'), 'utf8')).toBe(SECRET);
  });

  it('none reaches a server', () => {
    expect(requests).toBe(0);
  });

  it('none leaves a process', async () => {
    // What is inside of a sandbox that has ended may end a moment later.
    await expect.poll(() => started().map(programOf)).toEqual([]);
  });
});
