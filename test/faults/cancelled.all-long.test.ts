/**
 * A job is cancelled at a random moment: within 2 s nothing works for it any more and nothing of it is on the disk, it never completes, and
 * its end is told once. FAULTS_SEED repeats the moments of an earlier run.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from 'soundpost-testing/client';
import { descendants, isStopped, programOf, signalIfThere } from 'soundpost-testing/processes';
import { soundpost } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { isLong, percentile, promised, randomFrom, report, runs, seed } from './runs.ts';
import { LONG_LOCKS, Stand } from './stand.ts';
import type { Submission } from './submission.ts';

const JOBS = runs(3, 100);
const LIMIT_MS = 2000;
/** The short run does not wait for a machine that is busy with other things. */
const LONGEST_WAIT_MS = runs(3000, 60_000);
/** Most of its time ffmpeg is busy with it. Every third one is cancelled while its download takes its time. */
const SUBMISSION: Submission = {
  source: 'long.wav',
  output: { format: 'flac', normalize: isLong },
  webhook: true,
};

const seeded = seed();
const random = randomFrom(seeded);
let stand: Stand;
beforeAll(async () => {
  process.stdout.write(`FAULTS_SEED=${seeded}\n`);
  stand = await Stand.start({ environment: LONG_LOCKS });
  await stand.warmUp();
});
afterAll(() => stand.close());

const jobOf = (jobId: string): Promise<Json> => stand.ask(`/v1/jobs/${jobId}`);

/** What works for a job and what lies on the disk for it: nothing else runs meanwhile. */
async function traces(jobId: string): Promise<string[]> {
  const programs = stand.workers.flatMap(({ pid }) => descendants(pid)).map(programOf);
  const tools = programs.filter((name) => name !== 'soundpost-start');
  const root = join(stand.data, 'workspaces');
  // A gateway's folder lasts as long as a send.
  const folders = await Promise.all(
    (await readdir(root)).map((owner) => readdir(join(root, owner)).catch(() => [])),
  );
  return [...tools, ...folders.flat().filter((name) => name.includes(jobId))];
}

interface Cancelled {
  readonly jobId: string;
  /** What the job was doing when it was cancelled. */
  readonly during: string;
  /** From the request to the moment at which nothing of the job was left, ms. */
  readonly goneMs: number;
}

async function forget(jobId: string): Promise<void> {
  await stand.observer.atRest([jobId]);
  const { accepted, hooks } = stand;
  accepted.splice(
    accepted.findIndex((job) => job.jobId === jobId),
    1,
  );
  const others = hooks.calls.filter(({ json }) => json.jobId !== jobId);
  hooks.calls.splice(0, hooks.calls.length, ...others);
}

/** Undefined when the job had ended before. */
async function cancelOnce(withinMs: number, slowly: boolean): Promise<Cancelled | undefined> {
  if (slowly) stand.web.hold();
  const waitMs = random() * withinMs;
  // Of one that may be too late, nothing may have gone out that cannot be taken back.
  const jobId = await stand.submit({ ...SUBMISSION, voice: waitMs < withinMs / 2 });
  await delay(waitMs);
  const { status, currentStep } = await jobOf(jobId);
  const startedMs = performance.now();
  const answer = await stand.client.call('DELETE', `/v1/jobs/${jobId}`);
  expect(answer.status).toBe(200);
  if (answer.body.data.status === 'completed') {
    // Erased then, which is another matter.
    await forget(jobId);
    return undefined;
  }
  const cancelled = await until(
    `nothing of ${jobId} is left`,
    async () => (await traces(jobId)).length === 0,
  ).then(() => ({ jobId, during: currentStep ?? status, goneMs: performance.now() - startedMs }));
  stand.web.letGo();
  return cancelled;
}

async function cancelMany(): Promise<Cancelled[]> {
  const startedMs = Date.now();
  await stand.observer.ended(await stand.submit(SUBMISSION));
  const withinMs = Date.now() - startedMs;
  const cancelled: Cancelled[] = [];
  while (cancelled.length < JOBS) {
    const slowly = cancelled.length % 3 === 0;
    const one = await cancelOnce(slowly ? 500 : Math.min(0.7 * withinMs, LONGEST_WAIT_MS), slowly);
    if (one !== undefined) cancelled.push(one);
  }
  return cancelled;
}

it(
  `within ${LIMIT_MS / 1000} s nothing of it runs or lies about, and its end is told once`,
  async () => {
    const cancelled = await cancelMany();
    expect(await violations(stand)).toEqual([]);
    for (const { jobId, during, goneMs } of cancelled) {
      const what = `${jobId}, cancelled during ${during}`;
      promised(goneMs, LIMIT_MS, what);
      const { last } = stand.observer.of(jobId);
      expect([what, last.status, last.error.code]).toEqual([what, 'failed', 'JOB_CANCELLED']);
      const told = stand.hooks.calls.filter(({ json }) => json.jobId === jobId);
      expect([what, told.map(({ json }) => [json.event, json.error.code])]).toEqual([
        what,
        [['job.failed', 'JOB_CANCELLED']],
      ]);
    }
    const gone = cancelled.map(({ goneMs }) => Math.round(goneMs));
    report('Cancel at a random moment', {
      seed: seeded,
      cancelled: cancelled.length,
      goneMsP50: percentile(gone, 0.5),
      goneMsMax: percentile(gone, 1),
      during: Object.fromEntries(
        [...Map.groupBy(cancelled, ({ during }) => during)].map(([during, jobs]) => [during, jobs.length]),
      ),
    });
  },
  isLong ? 30 * 60_000 : 120_000,
);

it('tools that do not end when they are told to are noticed', async () => {
  await stand.workers[0]?.release();
  const preload = join(import.meta.dirname, 'sabotage', 'undying-tools.ts');
  const command = [...soundpost.toSpliced(1, 0, '--import', preload), 'worker'];
  const worker = stand.home.run(command, { PUBLIC_URL: stand.apiUrl });
  await worker.says(/^Worker/m);
  const jobId = await stand.submit(SUBMISSION);
  const encoder = () => descendants(worker.pid).find((pid) => programOf(pid) === 'ffmpeg');
  // So that it does not come to its end by itself. What has ended meanwhile does not stop, and another one may follow.
  const pid = await until('ffmpeg is stopped at its work', async () => {
    const isFar = (await jobOf(jobId)).progress > 30;
    const found = encoder();
    if (!isFar || found === undefined) return false;
    signalIfThere(found, 'SIGSTOP');
    return isStopped(found) && found;
  });
  await stand.client.call('DELETE', `/v1/jobs/${jobId}`);
  await delay(LIMIT_MS);
  expect(encoder()).toBe(pid);
  worker.signal('SIGKILL');
});
