/**
 * A worker stops for longer than its lock lasts, as in a virtual machine that is moved, and goes on as if nothing had been:
 * another one has done its job meanwhile, and what it hands in counts for nothing.
 */
import { writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isStopped } from 'soundpost-testing/processes';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { arm, type Point, reached } from './points.ts';
import { isLong, report, runs } from './runs.ts';
import { Stand } from './stand.ts';
import type { Supervised } from './supervised.ts';

/** Where the stale attempt has a whole result to hand in, where it has everything still before it, and between. */
const stops: readonly Point[] = [
  'published',
  'during-download',
  'encoding',
  'temporary-name',
  'before-publish',
  'analyzing',
  'before-voice-rendition',
  'workspace-made',
];

/** Beside other tests the worker that goes on may stand still for a while, too, and is not to lose the job. */
const LOCK_SECONDS = runs(6, 2);

let stand: Stand;
beforeAll(async () => {
  stand = await Stand.start({
    workers: 2,
    environment: { JOB_LOCK_SECONDS: String(LOCK_SECONDS) },
    workerPreloads: [fileURLToPath(new URL('./sabotage/accept-stale.ts', import.meta.url))],
  });
  await stand.warmUp();
});
afterAll(() => stand.close());

interface Stopped {
  readonly jobId: string;
  readonly worker: Supervised;
  /** Names the attempt that is stopped; undefined where it has not had its turn yet. */
  readonly staleToken: string | undefined;
}

/** Resolves when a worker stands still at the point, with a job in its hands. */
async function stopAt(point: Point): Promise<Stopped> {
  arm(stand, point, 'SIGSTOP');
  const jobId = await stand.submit({ webhook: true, voice: true });
  await reached(stand, point);
  const worker = await until('a worker is stopped', () => stand.workers.find(({ pid }) => isStopped(pid)));
  const [staleToken] = await attemptTokens(jobId);
  return { jobId, worker, staleToken };
}

async function record(jobId: string): Promise<Record<string, string>> {
  const redis = stand.redis.connect();
  try {
    return await redis.hgetall(`{soundpost}:extract:${jobId}`);
  } finally {
    redis.disconnect();
  }
}

async function attemptTokens(jobId: string): Promise<string[]> {
  return (await record(jobId)).spAttempts?.split(',') ?? [];
}

/** Lets it go on, and waits until it has nothing in its hands any more. */
async function goOn({ worker, jobId }: Stopped): Promise<void> {
  const root = join(stand.data, 'workspaces');
  worker.signal('SIGCONT');
  await until('the stopped worker has given up its job', async () => {
    const [mine = ''] = (await readdir(root)).filter((owner) => owner.includes(`.${worker.pid}.`));
    return !(await readdir(join(root, mine))).some((name) => name.startsWith(jobId));
  });
  await until('it was told why', () =>
    /given to another worker|Missing lock|could not renew lock|not in the active state/.test(worker.output),
  );
}

/** Which attempt's file is the job's, as the record says. */
async function winner(jobId: string): Promise<string> {
  return JSON.parse((await record(jobId)).returnvalue ?? '{}').outputFile.storageKey;
}

it(
  'another worker completes its job, and what it hands in afterwards is refused',
  async () => {
    let files = 0;
    const count = runs(2, 20);
    for (let nth = 0; nth < count; nth++) {
      const stopped = await stopAt(stops[nth % stops.length] ?? 'published');
      const { jobId, staleToken, worker } = stopped;
      expect(await stand.observer.ended(jobId)).toMatchObject({ status: 'completed' });
      expect(isStopped(worker.pid)).toBe(true);
      const [token = 'none', ...more] = (await attemptTokens(jobId)).filter((each) => each !== staleToken);
      expect(more).toEqual([]);
      const stored = await winner(jobId);
      expect(stored).toContain(token);
      await goOn(stopped);
      expect(await winner(jobId)).toBe(stored);
      const names = await readdir(join(stand.data, 'files', jobId));
      if (staleToken !== undefined && names.some((name) => name.startsWith(staleToken))) files += 1;
    }
    // The files of the stale attempts were there, and the checker finds them gone after the janitor has come by.
    expect(files).toBeGreaterThan(0);
    expect(await violations(stand)).toEqual([]);
    report('SIGSTOP of a worker past its lock, then SIGCONT', {
      stops: count,
      staleResultsRefused: count,
      staleFilesRemoved: files,
      lockSeconds: LOCK_SECONDS,
    });
  },
  isLong ? 15 * 60_000 : 120_000,
);

it('where a stale result is taken all the same, it is seen to have replaced the right one', async () => {
  const stopped = await stopAt('published');
  const { jobId, worker, staleToken = 'none' } = stopped;
  await stand.observer.ended(jobId);
  expect(await winner(jobId)).not.toContain(staleToken);
  writeFileSync(join(stand.folder, 'kills', 'accept-stale'), '');
  worker.signal('SIGCONT');
  await until('the stale result has replaced the other', async () =>
    (await winner(jobId)).includes(staleToken),
  );
});
