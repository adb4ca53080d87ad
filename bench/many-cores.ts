/**
 * What Node's part of a job allows where cores are many: `soundpost worker` as one command with sixteen places among the encoders against four workers of four, API and Redis
 * the same. In place of the encoding stands a sleep, since the machine need not have the cores: a script that sleeps before ffmpeg, of a clip of a second, and without
 * sandbox, so that nothing beside Node takes much of a processor. The rate can reach places / sleep, and does where Node's part
 * is small enough. Where cores are few both sides may be bound by them, and the processor time for a job tells more than the ratio.
 *
 *     node bench/many-cores.ts [--jobs 400] [--places 16] [--workers 4] [--sleepMs 300] [--runs 5]
 */
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'soundpost-testing/client';
import { mediaTools } from 'soundpost-testing/media-tools';
import { descendants } from 'soundpost-testing/processes';
import type { RunningProcess } from 'soundpost-testing/service';
import { usedSeconds } from './measuring/api.ts';
import { askedFor, inTurns, median, printRow, secondsOf } from './measuring/comparison.ts';
import { openHome } from './measuring/home.ts';
import { clipOf, inputFolder } from './measuring/inputs.ts';
import { allCompleted, removeJobs, submitted, toMp3, uploaded } from './measuring/queue-of-jobs.ts';

/** Jobs a place before it counts: compilers and caches of a new worker. */
const WARM_UP = 4;

const asked = askedFor({ jobs: 400, places: 16, workers: 4, sleepMs: 300, runs: 5 });
const { jobs, places, workers, sleepMs, runs } = asked;
const { folder, home, remove } = await openHome({ LOG_LEVEL: 'error', SANDBOX: 'off' });
const FFMPEG_PATH = await sleepyFfmpeg();
const api = home.start('api', { FFMPEG_PATH });
const apiUrl = await api.says(/^API\s+(http\S+)/m);
const service = { api: new Client(apiUrl, home.key), apiUrl, key: home.key };
const request = { source: await uploaded(service, join(inputFolder, await clipOf(1))), output: toMp3 };

/** @returns the path of an ffmpeg that sleeps first, with an ffprobe beside it that does not */
async function sleepyFfmpeg(): Promise<string> {
  const tools = join(folder, 'tools');
  const path = join(tools, 'ffmpeg');
  await mkdir(tools);
  await writeFile(path, `#!/bin/sh\nsleep ${sleepMs / 1000}\nexec '${mediaTools.ffmpegPath}' "$@"\n`);
  await chmod(path, 0o755);
  await symlink(mediaTools.ffprobePath, join(tools, 'ffprobe'));
  return path;
}

/** From the first submission to the last completion. @returns jobs a second */
async function rateOf(count: number): Promise<number> {
  let jobIds: string[] = [];
  const seconds = await secondsOf(async () => {
    jobIds = await submitted(service, request, count);
    await allCompleted(service, jobIds);
  });
  await removeJobs(service, jobIds);
  return count / seconds;
}

/** @param costs gets the processor time of the workers themselves, ms a job */
async function withWorkers(count: number, costs: number[]): Promise<number> {
  const environment = { FFMPEG_PATH, WORKER_CONCURRENCY: String(places / count) };
  const started = Array.from({ length: count }, () => home.start('worker', environment));
  await Promise.all(started.map(({ says }) => says(/^Worker/m)));
  await rateOf(WARM_UP * places);
  const used = (): number =>
    started.flatMap(({ pid }) => [pid, ...descendants(pid)]).reduce((sum, pid) => sum + usedSeconds(pid), 0);
  const before = used();
  const rate = await rateOf(jobs);
  costs.push(((used() - before) * 1000) / jobs);
  await Promise.all(started.map(ended));
  return rate;
}

async function ended({ signal, exited }: RunningProcess): Promise<void> {
  signal('SIGTERM');
  await exited;
}

const costs = { ours: [] as number[], theirs: [] as number[] };
printRow({
  what: `${jobs} jobs with a sleep of ${sleepMs} ms instead of encoding, one worker with ${places} slots`,
  against: `${workers} workers with ${places / workers} slots each`,
  unit: 'jobs/s',
  ...(await inTurns(
    runs,
    () => withWorkers(1, costs.ours),
    () => withWorkers(workers, costs.theirs),
    // Each turn warms its own workers.
    { warmUp: false },
  )),
  reach: { atLeast: 0.95 },
  remarks: [
    { what: 'processor time of the worker per job', value: median(costs.ours), unit: 'ms' },
    { what: `of the ${workers} workers together`, value: median(costs.theirs), unit: 'ms' },
  ],
});
await ended(api);
await remove();
