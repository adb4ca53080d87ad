/**
 * A worker dies at a named moment of a job: the job ends once and is told once, whatever the moment was. The long run has
 * each moment ten times, a short one has a moment of each stage once.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { arm, type Point, points, reached } from './points.ts';
import { isLong, percentile, report, runs } from './runs.ts';
import { Stand } from './stand.ts';

const ROUNDS = runs(1, 10);
const LANES = runs(1, 3);
/** Each death takes the other job down too, and a third loss would count as a job that kills its workers. */
const TOGETHER = 2;

const stands: Stand[] = [];
beforeAll(async () => {
  // Each is noted as soon as it stands, so that it is closed although another one does not start.
  const start = async () => stands.push(await Stand.start({ workers: 2 }));
  await Promise.all(Array.from({ length: LANES }, start));
  await Promise.all(stands.map((stand) => stand.warmUp()));
});
afterAll(() => Promise.all(stands.map((stand) => stand.close())));

/** Seconds from the death to the end of the job and of all that it announces. */
async function dieAt(stand: Stand, point: Point): Promise<number> {
  arm(stand, point);
  const jobId = await stand.submit({ webhook: true, voice: true });
  await reached(stand, point);
  const diedAtMs = Date.now();
  await stand.observer.atRest([jobId]);
  return (Date.now() - diedAtMs) / 1000;
}

const chosen: readonly Point[] = isLong
  ? points
  : ['encoding', 'published', 'between-announcements', 'before-webhook-recorded'];

it(
  'at each point the job ends once, and is told once',
  async () => {
    const left = Array.from({ length: ROUNDS }, () => chosen).flat();
    const kills = left.length;
    const seconds: number[] = [];
    await Promise.all(
      stands.map(async (stand) => {
        while (left.length > 0) {
          const together = left.splice(0, TOGETHER);
          seconds.push(...(await Promise.all(together.map((point) => dieAt(stand, point)))));
        }
      }),
    );
    const found = await Promise.all(stands.map((stand) => violations(stand)));
    expect(found.flat()).toEqual([]);
    const restarts = stands.flatMap(({ workers }) => workers.map(({ starts }) => starts - 1));
    expect(restarts.reduce((sum, count) => sum + count)).toBe(kills);
    report('SIGKILL at named points', {
      points: chosen.length,
      kills,
      correct: seconds.length,
      recoverySecondsP50: percentile(seconds, 0.5),
      recoverySecondsP95: percentile(seconds, 0.95),
      recoverySecondsMax: percentile(seconds, 1),
      lockSeconds: 2,
      ...(isLong ? {} : { at: chosen }),
    });
  },
  isLong ? 30 * 60_000 : 120_000,
);

it('where the gateway cannot know a repeated call, a voice message that is sent twice is reported', async () => {
  const [stand] = stands;
  if (stand === undefined) throw new Error('there is one');
  stand.gatewayCalls.hidesKeys = true;
  await dieAt(stand, 'after-gateway-call');
  const found = await violations(stand);
  expect(found.join('\n')).toContain('its voice message was sent 2 times');
});
