/**
 * Redis hangs, or its link is held, while jobs and voice messages are submitted, with and without idempotency keys: what is answered
 * 503 never runs, what is answered 202 does, once, and every answer comes within 2 s on a machine that is not busy (decisions A6,
 * docs/decisions/0031-accepted-or-never.md). Jobs that were accepted begin soon after, whatever was refused before them.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from 'soundpost-testing/client';
import { signalIfThere } from 'soundpost-testing/processes';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { HeldLink } from './held-link.ts';
import { KillableRedis } from './killable-redis.ts';
import { percentile, promised, randomFrom, report, runs, seed } from './runs.ts';
import { LONG_LOCKS, Stand } from './stand.ts';

const HANGS = runs(3, 200);
const KEYED_HANGS = runs(2, 200);
const VOICE_HANGS = runs(2, 100);
const WITH_KILLS = runs(1, 40);
/** Longer than an answer may take, shorter than what an idle connection is closed after. */
const STAND_MS = 2500;
const BEGINS_WITHIN_MS = 500;
const EVERY_MS = 30;
const LONGEST_ANSWER_MS = 2000;
const LONGEST_HANG_MS = 3000;
const REST_MS = 60_000;
const TIMEOUT_MS = 2 * REST_MS + HANGS * 10_000;

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
function submitOne(idempotencyKey?: string): Promise<Submitted> {
  count += 1;
  const source = `${count}.mp4`;
  return answered(
    source,
    stand.trySubmit({ source: stand.web.url(source), ...(idempotencyKey && { idempotencyKey }) }),
  );
}

async function answered(
  source: string,
  asked: Promise<{ readonly status: number; readonly body: Json }>,
): Promise<Submitted> {
  const startedMs = performance.now();
  const answer = await asked
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

interface Hangs {
  readonly during?: () => Promise<void>;
  readonly submit?: () => Promise<Submitted>;
}

/** Submits all the while, and lets Redis hang so many times, each time twice in a row. @param during a hang */
async function hang(
  times: number,
  { during = async () => undefined, submit = () => submitOne() }: Hangs = {},
): Promise<Submitted[]> {
  let isOver = false;
  const submitting = (async () => {
    const all: Promise<Submitted>[] = [];
    while (!isOver) {
      all.push(submit());
      await delay(EVERY_MS * 2 * random());
    }
    return Promise.all(all);
  })();
  for (let nth = 0; nth < times; nth += 1) {
    await delay(500 + 500 * random());
    const kind = Object.values(kinds)[nth % 3] ?? kinds.stopped;
    // The first is short enough that requests outlast it, so that the second meets them at every stage.
    const twice = async (): Promise<void> => {
      if (nth % 5 === 1) return kinds.asleep(STAND_MS);
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

it('the same with an Idempotency-Key each, and none runs twice', { timeout: TIMEOUT_MS }, async () => {
  const before = stand.web.requests.length;
  const submitted = await hang(KEYED_HANGS, { submit: () => submitOne(randomUUID()) });
  const started = await startedOf(submitted);
  expect(of(submitted, 503).filter((source) => started.has(source))).toEqual([]);
  expect(of(submitted, 202).filter((source) => !started.has(source))).toEqual([]);
  const asked = stand.web.requests.slice(before);
  expect(asked.filter((source, at) => asked.indexOf(source) !== at)).toEqual([]);
  report('Redis hangs under submissions with Idempotency-Key', {
    hangs: KEYED_HANGS,
    submitted: submitted.length,
    refused: of(submitted, 503).length,
    ...{ ghosts: 0, lost: 0, doubled: 0, seed: firstSeed },
  });
});

it('the same of voice messages with an Idempotency-Key each', { timeout: TIMEOUT_MS }, async () => {
  const jobId = await stand.submit({ voice: true });
  await stand.observer.atRest([jobId]);
  // Nobody has these numbers: each message is refused at its first try.
  stand.gatewayCalls.behaviour = () => 400;
  const before = stand.gatewayCalls.calls.length;
  let nth = 0;
  const submit = (): Promise<Submitted> => {
    nth += 1;
    // Another number each, so that the recorder can tell them apart.
    const number = `1202556${String(nth).padStart(4, '0')}`;
    const keyed = { 'Idempotency-Key': randomUUID() };
    const asked = stand.client.call(
      'POST',
      `/v1/jobs/${jobId}/voice-message`,
      { instance: 'main', number },
      keyed,
    );
    return answered(number, asked);
  };
  const submitted = await hang(VOICE_HANGS, { submit });
  const sent = () =>
    stand.gatewayCalls.calls.slice(before).map((call) => call.idempotencyKey?.split(':').at(-1) ?? '');
  await until('all are sent', () => of(submitted, 202).every((number) => sent().includes(number)), REST_MS);
  // What was not confirmed is dropped after 10 s.
  await delay(12_000);
  expect(of(submitted, 503).filter((number) => sent().includes(number))).toEqual([]);
  expect(sent().filter((number, at, all) => all.indexOf(number) !== at)).toEqual([]);
  report('Redis hangs under voice messages with Idempotency-Key', {
    hangs: VOICE_HANGS,
    submitted: submitted.length,
    refused: of(submitted, 503).length,
    ...{ ghosts: 0, lost: 0, doubled: 0, seed: firstSeed },
  });
});

it('after hangs a job that is accepted begins at once', { timeout: TIMEOUT_MS }, async () => {
  const submitted = await hang(runs(2, 30));
  const accepted = of(submitted, 202);
  await until('they have begun', () => accepted.every((one) => stand.web.requests.includes(one)), REST_MS);
  const source = stand.web.url('begun.mp4');
  await until('Redis has answered', async () => (await stand.ask('/v1/usage')) !== undefined);
  await stand.submit({ source });
  const acceptedMs = performance.now();
  await until('it has begun', () => stand.web.requests.includes('begun.mp4'), REST_MS);
  const tookMs = performance.now() - acceptedMs;
  promised(tookMs, BEGINS_WITHIN_MS, `FAULTS_SEED=${firstSeed}`);
  report('Redis hangs: then a job begins', {
    hangs: runs(2, 30),
    beginsMs: Math.round(tookMs),
    seed: firstSeed,
  });
});

it('the same when the API is killed in the middle', { timeout: TIMEOUT_MS }, async () => {
  const during = async () => {
    await delay(1000 * random());
    await stand.api.kill();
    await stand.api.ready();
  };
  const submitted = await hang(WITH_KILLS, { during });
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
