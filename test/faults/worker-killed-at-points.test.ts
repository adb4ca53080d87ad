/**
 * A worker dies at a named moment of a job: the job ends once and is told once, whatever the moment was. All moments come
 * by, each with a job of its own; the long run has ten of each.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { arm, type Point, points, reached } from './points.ts';
import { isLong, percentile, report, runs } from './runs.ts';
import { Stand } from './stand.ts';

let stand: Stand;
beforeAll(async () => {
  stand = await Stand.start({ workers: 2 });
  await stand.warmUp();
});
afterAll(() => stand.close());

/** Seconds from the death to the end of the job and of all that it announces. */
async function dieAt(point: Point): Promise<number> {
  arm(stand, point);
  const jobId = await stand.submit({ webhook: true, voice: true });
  await reached(stand, point);
  const diedAtMs = Date.now();
  await stand.observer.atRest([jobId]);
  return (Date.now() - diedAtMs) / 1000;
}

/** In the short run a few of the points, so that all come by within some days of runs. */
const chosen: readonly Point[] = isLong
  ? points
  : Array.from(
      { length: 4 },
      (_none, index) => points[(Math.floor(Date.now() / 1000) + index * 3) % points.length] ?? 'taken',
    );

it(
  'at each point the job ends once, and is told once',
  async () => {
    const seconds: number[] = [];
    // Two at a time: each takes the other down too, and a third loss would count as a job that kills its workers.
    for (let round = 0; round < runs(1, 10); round++) {
      for (let first = 0; first < chosen.length; first += 2) {
        const together = chosen.slice(first, first + 2);
        seconds.push(...(await Promise.all(together.map(dieAt))));
      }
    }
    expect(await violations(stand)).toEqual([]);
    const restarts = stand.workers.reduce((sum, { starts }) => sum + starts - 1, 0);
    expect(restarts).toBe(seconds.length);
    report('SIGKILL at named points', {
      points: chosen.length,
      kills: seconds.length,
      correct: seconds.length,
      recoverySecondsP50: percentile(seconds, 0.5),
      recoverySecondsP95: percentile(seconds, 0.95),
      lockSeconds: 2,
    });
  },
  isLong ? 30 * 60_000 : 60_000,
);

it('where the gateway cannot know a repeated call, a voice message that is sent twice is reported', async () => {
  stand.gatewayCalls.hidesKeys = true;
  await dieAt('after-gateway-call');
  const found = await violations(stand);
  expect(found.join('\n')).toContain('its voice message was sent 2 times');
});
