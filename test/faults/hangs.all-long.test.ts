/**
 * Redis hangs, or its link is held, while jobs are submitted without idempotency keys: what is answered 503 never runs, what is
 * answered 202 does, and every answer comes within 2 s on a machine that is not busy (decisions A6, docs/decisions/0031-accepted-or-never.md).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { signalIfThere } from 'soundpost-testing/processes';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { HeldLink } from './held-link.ts';
import { KillableRedis } from './killable-redis.ts';
import { percentile, promised, randomFrom, report, runs, seed } from './runs.ts';
import { LONG_LOCKS, Stand } from './stand.ts';

const HANGS = runs(3, 200);
const WITH_KILLS = runs(1, 40);
const EVERY_MS = 30;
const LONGEST_ANSWER_MS = 2000;
const LONGEST_HANG_MS = 3000;
const REST_MS = 60_000;
const TIMEOUT_MS = REST_MS + (HANGS + WITH_KILLS) * 10_000;

const firstSeed = seed();
const random = randomFrom(firstSeed);
let folder: string;
let redis: KillableRedis | undefined;
let link: HeldLink;
let stand: Stand;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sph-'));
  link = await HeldLink.start(join(folder, 'l.sock'), () => redis?.socketUrl.replace('unix://', '') ?? '');
  stand = await Stand.start({
    environment: { ...LONG_LOCKS, RATE_SUBMIT_PER_MINUTE: '1000000' },
    apiEnvironment: { REDIS_URL: link.url },
    redis: (at) => {
      redis = new KillableRedis(at);
      return redis;
    },
  });
});
afterAll(async () => {
  await stand.close();
  link.close();
  await rm(folder, { recursive: true, force: true });
});

type Answer = 202 | 503 | 'none';
interface Submitted {
  readonly source: string;
  readonly answer: Answer;
  readonly tookMs: number;
}

/** Sources that are not there: a job that is started asks for its own, and fails. */
let count = 0;
async function submitOne(): Promise<Submitted> {
  count += 1;
  const source = `${count}.mp4`;
  const startedMs = performance.now();
  const answer = await stand
    .trySubmit({ source: stand.web.url(source) })
    .then(({ status, body }) => {
      if (status !== 202 && status !== 503) throw new Error(JSON.stringify(body));
      return status as Answer;
    })
    .catch((error: unknown): Answer => {
      if (error instanceof TypeError) return 'none';
      throw error;
    });
  return { source, answer, tookMs: performance.now() - startedMs };
}

const kinds = {
  async stopped(ms: number) {
    const { pid = 0 } = redis ?? {};
    signalIfThere(pid, 'SIGSTOP');
    await delay(ms);
    signalIfThere(pid, 'SIGCONT');
  },
  async asleep(ms: number) {
    const asking = stand.redis.connect();
    await asking.call('DEBUG', 'SLEEP', String(ms / 1000)).finally(() => asking.disconnect());
  },
  async held(ms: number) {
    link.hold();
    await delay(ms);
    link.letGo();
  },
};

/** Submits all the while, and lets Redis hang so many times, each time twice in a row. @param during a hang */
async function hang(
  times: number,
  during: () => Promise<void> = async () => undefined,
): Promise<Submitted[]> {
  let isOver = false;
  const submitting = (async () => {
    const all: Promise<Submitted>[] = [];
    while (!isOver) {
      all.push(submitOne());
      await delay(EVERY_MS * 2 * random());
    }
    return Promise.all(all);
  })();
  for (let nth = 0; nth < times; nth += 1) {
    await delay(500 + 500 * random());
    const kind = Object.values(kinds)[nth % 3] ?? kinds.stopped;
    // The first is short enough that requests outlast it, so that the second meets them at every stage.
    const twice = async (): Promise<void> => {
      await kind(850 * random());
      await delay(8 * random());
      await kind(1000 + (LONGEST_HANG_MS - 1000) * random());
    };
    await Promise.all([twice(), during()]);
  }
  await delay(1000);
  isOver = true;
  return submitting;
}

/** Which of them were started, once nothing waits or runs any more. */
async function startedOf(submitted: readonly Submitted[]): Promise<Set<string>> {
  const asking = stand.redis.connect();
  const left = async (): Promise<number> => {
    const queue = '{soundpost}:extract';
    const counts = await Promise.all([
      asking.zcard(`${queue}:prioritized`),
      asking.llen(`${queue}:active`),
      asking.llen(`${queue}:wait`),
      asking.zcard(`${queue}:delayed`),
    ]);
    return counts.reduce((sum, one) => sum + one, 0);
  };
  const wanted = submitted.filter(({ answer }) => answer === 202).map(({ source }) => source);
  const isLost = (source: string): boolean => !stand.web.requests.includes(source);
  await until('all have been started', async () => (await left()) === 0, REST_MS);
  await until('none is lost', () => !wanted.some(isLost), 10_000).catch(() => undefined);
  asking.disconnect();
  return new Set(stand.web.requests);
}

const of = (submitted: readonly Submitted[], wanted: Answer) =>
  submitted.filter(({ answer }) => answer === wanted).map(({ source }) => source);

beforeEach(() => {
  stand.accepted.length = 0;
});

it('what is answered 503 never runs, and what is answered 202 does', { timeout: TIMEOUT_MS }, async () => {
  const submitted = await hang(HANGS);
  const started = await startedOf(submitted);
  expect(of(submitted, 503).filter((source) => started.has(source))).toEqual([]);
  expect(of(submitted, 202).filter((source) => !started.has(source))).toEqual([]);
  expect(of(submitted, 'none')).toEqual([]);
  const slowest = percentile(
    submitted.map(({ tookMs }) => tookMs),
    1,
  );
  promised(slowest, LONGEST_ANSWER_MS, `FAULTS_SEED=${firstSeed}`);
  report('Redis hangs under submissions', {
    hangs: HANGS,
    submitted: submitted.length,
    refused: of(submitted, 503).length,
    ghosts: 0,
    lost: 0,
    slowestMs: Math.round(slowest),
    seed: firstSeed,
  });
});

it('the same when the API is killed in the middle', { timeout: TIMEOUT_MS }, async () => {
  const submitted = await hang(WITH_KILLS, async () => {
    await delay(1000 * random());
    await stand.api.kill();
    await stand.api.ready();
  });
  const started = await startedOf(submitted);
  expect(of(submitted, 503).filter((source) => started.has(source))).toEqual([]);
  expect(of(submitted, 202).filter((source) => !started.has(source))).toEqual([]);
  report('Redis hangs under submissions, the API killed', {
    hangs: WITH_KILLS,
    submitted: submitted.length,
    unanswered: of(submitted, 'none').length,
    ghosts: 0,
    lost: 0,
    seed: firstSeed,
  });
});
