/**
 * The worker dies at a random moment, with everything that it has in hand, and is started again: every job ends once, as if
 * nothing had been. FAULTS_SEED repeats the moments of an earlier run.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { isAtRest } from './observer.ts';
import { percentile, randomFrom, report, seed } from './runs.ts';
import { Stand } from './stand.ts';

const JOBS = 200;
/** As many as the worker runs at a time, so that its death meets each of them. */
const TOGETHER = 4;

const seeded = seed();
const random = randomFrom(seeded);

let stand: Stand;
beforeAll(async () => {
  process.stdout.write(`FAULTS_SEED=${seeded}\n`);
  stand = await startStand();
});
afterAll(() => stand.close());

async function startStand(environment = {}): Promise<Stand> {
  const started = await Stand.start({
    environment: { WORKER_CONCURRENCY: String(TOGETHER), ...environment },
  });
  await started.warmUp();
  return started;
}

/** What a job that is not disturbed takes until all is told, seconds: the moments are drawn from so long a time. */
async function undisturbedSeconds(on: Stand): Promise<number> {
  const startedMs = Date.now();
  await on.observer.atRest(await submitTogether(on));
  return (Date.now() - startedMs) / 1000;
}

function submitTogether(on: Stand): Promise<string[]> {
  return Promise.all(Array.from({ length: TOGETHER }, () => on.submit({ webhook: true, voice: true })));
}

interface Killed {
  readonly jobId: string;
  /** From the death to the end of the job and of all that it tells, seconds. */
  readonly seconds: number;
  /** What the job was doing when its worker died. */
  readonly during: string;
}

/** Jobs that were unfinished when their worker died. */
async function killOnce(on: Stand, withinSeconds: number): Promise<Killed[]> {
  const jobIds = await submitTogether(on);
  await delay(random() * withinSeconds * 1000);
  const [worker] = on.workers;
  const states = await Promise.all(jobIds.map((jobId) => on.ask(`/v1/jobs/${jobId}`)));
  const killing = worker?.kill();
  const killedAtMs = Date.now();
  await killing;
  return Promise.all(
    states.flatMap((state, index) => {
      const jobId = jobIds[index] ?? '';
      if (isAtRest(state) || state.status === 'queued') return [];
      const during = state.status === 'processing' ? state.currentStep : 'announcing';
      return on.observer
        .atRest([jobId], 120_000)
        .then(() => ({ jobId, seconds: (Date.now() - killedAtMs) / 1000, during }));
    }),
  );
}

async function killUntil(on: Stand, jobs: number): Promise<Killed[]> {
  const within = await undisturbedSeconds(on);
  const killed: Killed[] = [];
  while (killed.length < jobs) {
    killed.push(...(await killOnce(on, within)));
    await on.workers[0]?.ready();
  }
  return killed;
}

function figuresOf(killed: readonly Killed[], lockSeconds: number): Record<string, unknown> {
  const seconds = killed.map((job) => job.seconds);
  return {
    seed: seeded,
    lockSeconds,
    jobsKilled: killed.length,
    recoverySecondsP50: percentile(seconds, 0.5),
    recoverySecondsP95: percentile(seconds, 0.95),
    recoverySecondsMax: percentile(seconds, 1),
    during: Object.fromEntries(
      [...Map.groupBy(killed, ({ during }) => during)].map(([during, jobs]) => [during, jobs.length]),
    ),
  };
}

it(
  'jobs whose worker dies end once, and are told once',
  async () => {
    const killed = await killUntil(stand, JOBS);
    expect(await violations(stand)).toEqual([]);
    report('SIGKILL of the worker at a random moment', { correct: killed.length, ...figuresOf(killed, 2) });
    expect(
      percentile(
        killed.map(({ seconds }) => seconds),
        0.95,
      ),
    ).toBeLessThan(60);
  },
  30 * 60_000,
);

it('without a worker that takes them up the invariants report them', async () => {
  await stand.workers[0]?.release();
  const jobId = await stand.submit();
  const found = await violations(stand, { restMs: 1000 });
  expect(found.join('\n')).toContain(`${jobId}: has no end: queued`);
  expect(found.join('\n')).toContain('extract still has prioritized');
});

it(
  'with the lock time of an installation that sets nothing, they are taken up within a minute',
  async () => {
    const slow = await startStand({ JOB_LOCK_SECONDS: '30' });
    try {
      const killed = await killUntil(slow, 16);
      expect(await violations(slow)).toEqual([]);
      report('SIGKILL of the worker at a random moment', {
        correct: killed.length,
        ...figuresOf(killed, 30),
      });
      expect(
        percentile(
          killed.map(({ seconds }) => seconds),
          0.95,
        ),
      ).toBeLessThan(60);
    } finally {
      await slow.close();
    }
  },
  20 * 60_000,
);
