/**
 * What time it is by Redis. Whatever expires or waits is compared with its TIME, so that processes agree on it whatever their own clocks say (decisions E,
 * "Clocks"). A process speaks with one Redis, so it has one such clock, which {@link clockProbe} sets.
 */
import type { Probe } from '../observe/probes.ts';
import type { Redis } from './connection.ts';
import { KEY_PREFIX } from './keys.ts';
import { loadScript } from './script.ts';

/** A process that is further off takes no jobs and sweeps nothing, ms. */
export const MOST_OFF_MS = 5000;
/** An answer that took longer says too little about the moment at which it was true. */
const LONGEST_ANSWER_MS = 1000;

export class RedisClock {
  #known: { readonly redisMs: number; readonly steadyMs: number } | undefined;

  /** Redis' time, ms since the epoch; before it was heard of for the first time, the process's own. */
  now(): number {
    const { redisMs, steadyMs } = this.#known ?? {};
    // What has gone by since is told by a clock that nobody sets.
    return redisMs === undefined || steadyMs === undefined
      ? Date.now()
      : Math.round(redisMs + performance.now() - steadyMs);
  }

  /** By how much the process's own clock is ahead, ms; negative where it is behind. */
  get aheadMs(): number {
    return Date.now() - this.now();
  }

  /** Whether the process's own clock is near enough to Redis': then what is timed by libraries is timed right. */
  get isRight(): boolean {
    return Math.abs(this.aheadMs) <= MOST_OFF_MS;
  }

  /** Nobody asks Redis any more: the time is the process's own again. */
  forget(): void {
    this.#known = undefined;
  }

  /** Takes what Redis said just now. */
  set(redisMs: number): void {
    this.#known = { redisMs, steadyMs: performance.now() };
  }
}

/** That of this process. */
export const redisClock = new RedisClock();

/** Redis' time, ms since the epoch. */
export function redisNow(): number {
  return redisClock.now();
}

/** Asks where the keys are: of a cluster, another node has another clock. */
const time = loadScript(new URL('./lua/server-time.lua', import.meta.url));

/** Asks Redis for its time, for the row `clock`. A Redis that is away says nothing about clocks. */
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
