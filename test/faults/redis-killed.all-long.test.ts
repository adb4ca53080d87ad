/**
 * Redis dies with everything under way and comes back over its append-only file: whatever was accepted goes on to its end, and what was
 * not is accepted under the same key when it is sent again.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { byRun } from 'soundpost-testing/by-run';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { Load } from './load.ts';
import { type Accepted, countSetbacks } from './persistent-client.ts';
import { isLong, percentile, report, runs } from './runs.ts';
import { Stand } from './stand.ts';

/** Seconds without Redis: less than a lock lasts, more than that, and much more. */
const OUTAGES = byRun({ all: [7], long: [1, 7, 20] });
const ROUNDS = runs(1, 20);
const EVERY_MS = runs(1000, 250);
const AFTERWARDS_MS = 120_000;

let stand: Stand;
beforeAll(async () => {
  stand = await Stand.start({ workers: 2 });
  await stand.warmUp();
});
afterAll(() => stand.close());

interface Outage {
  readonly accepted: readonly Accepted[];
  /** From the moment at which Redis answers until everything that was under way when it died is told, seconds. */
  readonly recoverySeconds: number;
}

/** Kills Redis while jobs are downloaded, encoded and announced, and others are submitted. */
async function outage(on: Stand, seconds: number): Promise<Outage> {
  const encoding = await on.submit({ source: 'long.wav', output: { format: 'flac' }, webhook: true });
  await until('ffmpeg is at it', async () => (on.observer.of(encoding).last?.progress ?? 0) > 30);
  on.web.hold();
  const begun = on.web.requests.length;
  const downloading = await Promise.all([
    on.submit({ webhook: true, voice: true }),
    on.submit({ webhook: true }),
  ]);
  await until('both are downloaded', () => on.web.requests.length >= begun + 2);
  const load = new Load(on, EVERY_MS);
  await on.redis.kill();
  await delay(seconds * 500);
  on.web.letGo();
  await delay(seconds * 500);
  await on.redis.start();
  const backAtMs = Date.now();
  await on.observer.atRest([encoding, ...downloading], AFTERWARDS_MS);
  const recoverySeconds = (Date.now() - backAtMs) / 1000;
  const accepted = await load.stop();
  await on.observer.atRest(
    accepted.map(({ jobId }) => jobId),
    AFTERWARDS_MS,
  );
  return { accepted, recoverySeconds };
}

it.each(OUTAGES)(
  'without Redis for %i s: everything resumes, and nothing accepted is lost',
  async (seconds) => {
    const before = stand.accepted.length;
    const outages: Outage[] = [];
    for (let round = 0; round < ROUNDS; round++) outages.push(await outage(stand, seconds));
    expect(await violations(stand)).toEqual([]);
    const states = stand.accepted.map(({ jobId }) => stand.observer.of(jobId).last?.status);
    expect(new Set(states)).toEqual(new Set(['completed']));
    const accepted = outages.flatMap((one) => one.accepted);
    const recovery = outages.map(({ recoverySeconds }) => recoverySeconds);
    report('Redis killed under load', {
      secondsAway: seconds,
      outages: outages.length,
      resumed: outages.length,
      jobsAccepted: stand.accepted.length - before,
      lost: 0,
      recoverySecondsP50: percentile(recovery, 0.5),
      recoverySecondsMax: percentile(recovery, 1),
      slowestAnswerMs: Math.round(Math.max(...accepted.map(({ slowestMs }) => slowestMs))),
      setbacks: countSetbacks(accepted),
    });
  },
  isLong ? 60 * 60_000 : 120_000,
);

it('a Redis that comes back with nothing is noticed', async () => {
  stand.web.hold();
  const jobId = await stand.submit({ webhook: true });
  await stand.redis.kill();
  await rm(join(stand.folder, 'redis', 'appendonlydir'), { recursive: true });
  await stand.redis.start();
  stand.web.letGo();
  expect((await violations(stand, { restMs: 2000 })).join('\n')).toContain(`${jobId}: has no end`);
});
