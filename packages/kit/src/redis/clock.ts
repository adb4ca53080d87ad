/**
 * Redis' time. All expiries and waits use it, so that processes with different clocks agree
 * (decisions E, "Clocks"). A process uses one Redis and so one clock; {@link clockProbe} sets it.
 */
import type { Probe } from '../observe/probes.ts';
import type { Redis } from './connection.ts';
import { KEY_PREFIX } from './keys.ts';
import { loadScript } from './script.ts';

/** If its clock is further off, a process starts no jobs and sweeps nothing, ms. */
export const MOST_OFF_MS = 5000;
/** A slower answer says too little about when it was true. */
const LONGEST_ANSWER_MS = 1000;

export class RedisClock {
  #known: { readonly redisMs: number; readonly steadyMs: number } | undefined;

  /** Redis' time, ms since the epoch; the process's own before Redis' first answer. */
  now(): number {
    const { redisMs, steadyMs } = this.#known ?? {};
    // The monotonic clock measures the time since then.
    return redisMs === undefined || steadyMs === undefined
      ? Date.now()
      : Math.round(redisMs + performance.now() - steadyMs);
  }

  /** How far the process's own clock is ahead, ms; negative if it is behind. */
  get aheadMs(): number {
    return Date.now() - this.now();
  }

  /** Whether the process's own clock is close enough to Redis' for libraries that use it. */
  get isRight(): boolean {
    return Math.abs(this.aheadMs) <= MOST_OFF_MS;
  }

  /** Without a Redis, the time is the process's own again. */
  forget(): void {
    this.#known = undefined;
  }

  /** Sets Redis' current time. */
  set(redisMs: number): void {
    this.#known = { redisMs, steadyMs: performance.now() };
  }
}

/** The clock of this process. */
export const redisClock = new RedisClock();

/** Redis' time, ms since the epoch. */
export function redisNow(): number {
  return redisClock.now();
}

/** Asks the node with the keys, since each node of a cluster has its own clock. */
const time = loadScript(new URL('./lua/server-time.lua', import.meta.url));

/** Reads Redis' time, for the row `clock`. An unavailable Redis says nothing about clocks. */
export function clockProbe(redis: Redis, clock = redisClock): Probe<'clock'> {
  return {
    async ask() {
      const askedMs = performance.now();
      const [seconds, micros] = (await time.run(redis, [KEY_PREFIX], [])) as [string, string];
      const tookMs = performance.now() - askedMs;
      if (tookMs <= LONGEST_ANSWER_MS) clock.set(Number(seconds) * 1000 + Number(micros) / 1000 + tookMs / 2);
      return clock.isRight ? 'right' : 'wrong';
    },
    details: () => ({ aheadSeconds: clock.aheadMs / 1000 }),
    figures: () => ({ soundpost_clock_ahead_seconds: clock.aheadMs / 1000 }),
    close: () => clock.forget(),
  };
}
