/**
 * The API dies again and again while a client submits under Idempotency-Keys and sends again what was not answered: every submission
 * becomes exactly one job, and the client is told the same one however often it asks.
 *
 * Broken by hand: with ids that do not follow from the key (`idFor` without its seed) jobs were there that nobody was told of.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from 'soundpost-testing/client';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { type Accepted, countSetbacks, submitSurely } from './persistent-client.ts';
import { isLong, percentile, randomFrom, report, runs, seed } from './runs.ts';
import { Stand } from './stand.ts';

const SUBMISSIONS = runs(50, 1000);
const KILLS = runs(1, 40);
/** Submissions under way at a time, so that each death meets some in every state. */
const TOGETHER = 16;
/** Of the rest, those that tell nobody are cancelled to save time. */
const RUN_TO_THE_END = runs(5, 1000);
const numberOf = (idempotencyKey: string): number => Number(idempotencyKey.slice(1));
const tells = (number: number): boolean => number % 10 === 0;

const seeded = seed();
const random = randomFrom(seeded);
let stand: Stand;
/** Of a key of its own, whose jobs can be counted. */
let key = '';
beforeAll(async () => {
  process.stdout.write(`FAULTS_SEED=${seeded}\n`);
  stand = await Stand.start();
  await stand.warmUp();
  key = await stand.newKey('submitter');
});
afterAll(() => stand.close());

/** Submits everything, so many at a time. */
async function submitAll(accepted: Accepted[]): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: TOGETHER }, async () => {
      while (next < SUBMISSIONS) {
        const number = next++;
        accepted.push(
          await submitSurely(stand, { key, webhook: tells(number), idempotencyKey: `s${number}` }),
        );
      }
    }),
  );
}

/** Kills the API at random moments, spread over the submissions. @returns how long it was away each time, seconds */
async function killMeanwhile(accepted: readonly Accepted[]): Promise<number[]> {
  const away: number[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const after = ((kill + random()) / (KILLS + 1)) * SUBMISSIONS;
    await until('enough is accepted', () => accepted.length >= after, 120_000);
    // Within what a submission takes, so that any part of one may be hit.
    await delay(random() * 20);
    const startedMs = Date.now();
    const replaced = stand.api.replaced();
    await stand.api.kill();
    await replaced;
    away.push((Date.now() - startedMs) / 1000);
  }
  return away;
}

function forget(jobId: string): void {
  stand.accepted.splice(
    stand.accepted.findIndex((job) => job.jobId === jobId),
    1,
  );
}

/** Every job of the key, as the service lists them. */
async function listed(of: string): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Json = await stand.ask(`/v1/jobs?limit=100${cursor === null ? '' : `&cursor=${cursor}`}`, of);
    ids.push(...page.jobs.map(({ jobId }: Json) => jobId));
    cursor = page.nextCursor;
  } while (cursor !== null);
  return ids;
}

/** What is wrong with the jobs of a key, of which each submission should have made one. */
async function faultsOf(of: string, accepted: readonly Accepted[]): Promise<string[]> {
  const jobs = new Set(await listed(of));
  const told = new Set(accepted.map(({ jobId }) => jobId));
  return [
    ...[...told].filter((jobId) => !jobs.has(jobId)).map((jobId) => `${jobId} was accepted and is not there`),
    ...[...jobs]
      .filter((jobId) => !told.has(jobId))
      .map((jobId) => `${jobId} is there and nobody was told of it`),
    ...(told.size < accepted.length ? [`${accepted.length} submissions became ${told.size} jobs`] : []),
  ];
}

it(
  'every submission is exactly one job',
  async () => {
    const accepted: Accepted[] = [];
    const [, away] = await Promise.all([submitAll(accepted), killMeanwhile(accepted)]);
    expect(await faultsOf(key, accepted)).toEqual([]);
    // Whoever asks again later is told of the same job, and makes none.
    for (const { idempotencyKey, jobId } of accepted.filter((_one, index) => index % 10 === 0)) {
      const again = await submitSurely(stand, {
        key,
        webhook: tells(numberOf(idempotencyKey)),
        idempotencyKey,
      });
      expect(again.jobId).toBe(jobId);
    }
    expect(await faultsOf(key, accepted)).toEqual([]);
    const spare = accepted.filter(({ idempotencyKey }) => !tells(numberOf(idempotencyKey)));
    for (const { jobId } of spare.slice(RUN_TO_THE_END)) {
      const { body } = await stand.clientOf(key).call('DELETE', `/v1/jobs/${jobId}`);
      // It was quicker and is erased then, which is another matter.
      if (body.data.status === 'completed') forget(jobId);
    }
    expect(await violations(stand, { restMs: isLong ? 20 * 60_000 : 60_000 })).toEqual([]);
    const repeated = accepted.filter(({ tries }) => tries > 1);
    // Else no death met a submission, and nothing was shown.
    expect(repeated.length).toBeGreaterThan(0);
    report('API killed during submissions with Idempotency-Key', {
      seed: seeded,
      submissions: accepted.length,
      jobs: new Set(accepted.map(({ jobId }) => jobId)).size,
      kills: KILLS,
      sentMoreThanOnce: repeated.length,
      setbacks: countSetbacks(accepted),
      awaySecondsP50: percentile(away, 0.5),
    });
  },
  isLong ? 60 * 60_000 : 120_000,
);

it('a client that repeats without a key makes two jobs, which is noticed', async () => {
  const keyless = await stand.newKey('keyless');
  const send = () => stand.submit({ key: keyless });
  // The first answer is lost.
  await send();
  const jobId = await send();
  const accepted = [{ jobId, idempotencyKey: '', tries: 2, setbacks: [], slowestMs: 0 }];
  expect((await faultsOf(keyless, accepted)).join('\n')).toMatch(
    /job_\w+ is there and nobody was told of it/,
  );
});
