/** Checks the clock: a process whose clock differs too much from Redis' takes no jobs. */
import { MOST_OFF_MS } from 'soundpost-kit/redis/clock';
import { type Finding, messageOf, ok } from './check.ts';
import type { System } from './system.ts';

/** NTP keeps clocks closer. Delayed jobs and link expiry are off by the difference. */
const WORTH_REPORTING_MS = 2000;

/** A clock outside these years is wrong. */
const FIRST_YEAR = 2026;
const LAST_YEAR = 2126;

interface Clock {
  /** ms since 1970 */
  now(): number;
  /** ms of a monotonic clock */
  steady(): number;
}

/** @param redisTime reads Redis' clock, ms since 1970; undefined without Redis */
export async function checkClock(
  clock: Clock,
  redisTime: (() => Promise<number>) | undefined,
  system: System,
): Promise<Finding[]> {
  const year = new Date(clock.now()).getUTCFullYear();
  const remedy = 'set the clock by NTP';
  const command = system.setClock();
  if (year < FIRST_YEAR || year > LAST_YEAR) {
    return [{ verdict: 'fault', found: `this clock says the year is ${year}`, remedy, command }];
  }
  const date = new Date(clock.now()).toISOString();
  if (redisTime === undefined) return [ok(`${date}; no Redis to compare it with`)];
  const askedMs = clock.steady();
  const nowMs = clock.now();
  let redisMs: number;
  try {
    redisMs = await redisTime();
  } catch (error) {
    return [
      { verdict: 'warning', found: `${date}; could not read the time from Redis (${messageOf(error)})` },
    ];
  }
  const tookMs = clock.steady() - askedMs;
  const movedMs = clock.now() - nowMs - tookMs;
  if (Math.abs(movedMs) > WORTH_REPORTING_MS) {
    return [{ verdict: 'warning', found: `the clock just jumped by ${seconds(movedMs)}`, remedy, command }];
  }
  // Redis answered somewhere in between.
  const aheadMs = nowMs + tookMs / 2 - redisMs;
  if (Math.abs(aheadMs) - tookMs / 2 < WORTH_REPORTING_MS) return [ok(`${date}, same as Redis`)];
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  const isFault = Math.abs(aheadMs) > MOST_OFF_MS;
  return [
    {
      verdict: isFault ? 'fault' : 'warning',
      found: `${seconds(aheadMs)} ${side} the clock of Redis${isFault ? ': workers here start no jobs and clean up nothing' : ''}`,
      remedy: `${remedy}, here and on the Redis machine`,
      command,
    },
  ];
}

function seconds(ms: number): string {
  return `${(Math.abs(ms) / 1000).toFixed(1)} s`;
}
