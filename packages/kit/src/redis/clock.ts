/**
 * What time it is by Redis. Whatever expires or waits is compared with its TIME, so that processes agree on it whatever their own clocks say (decisions E,
 * "Clocks"). A process speaks with one Redis, so it has one such clock, which {@link watchClock} keeps.
 */
import { EventEmitter } from 'node:events';
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from './connection.ts';
import { KEY_PREFIX } from './keys.ts';
import { loadScript } from './script.ts';

/** A process that is further off takes no jobs and sweeps nothing, ms. */
export const MOST_OFF_MS = 5000;
const LOOK_EVERY_MS = 1000;
/** An answer that took longer says too little about the moment at which it was true. */
const LONGEST_ANSWER_MS = 1000;

/** Emits `wrong` and `right` when that of the process's own clock changes. */
export class RedisClock extends EventEmitter<{ wrong: []; right: [] }> {
  #known: { readonly redisMs: number; readonly steadyMs: number } | undefined;
  #isRight = true;

  constructor() {
    super();
    // Each of a process's workers listens.
    this.setMaxListeners(0);
  }

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
    this.#isRight = true;
  }

  /** Takes what Redis said just now. */
  set(redisMs: number): void {
    this.#known = { redisMs, steadyMs: performance.now() };
    if (this.isRight === this.#isRight) return;
    this.#isRight = this.isRight;
    this.emit(this.#isRight ? 'right' : 'wrong');
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

interface ClockWatch {
  /** Asks Redis for its time; to be awaited before anything is timed. A Redis that is away says nothing about clocks. */
  look(): Promise<void>;
  close(): void;
}

/** Asks every second, from the first `look` on, and says when the process's own clock is wrong. */
export function watchClock(redis: Redis, logger: Logger, clock = redisClock): ClockWatch {
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const onWrong = (): void =>
    logger.error(
      { aheadSeconds: clock.aheadMs / 1000 },
      `the clock of this machine is more than ${MOST_OFF_MS / 1000} s off that of Redis: no jobs are taken and nothing is swept until it is right; have it set by NTP`,
    );
  const onRight = (): void => logger.warn('the clock is right again');
  clock.on('wrong', onWrong).on('right', onRight);

  const ask = async (): Promise<void> => {
    const askedMs = performance.now();
    const [seconds, micros] = (await time.run(redis, [KEY_PREFIX], [])) as [string, string];
    const tookMs = performance.now() - askedMs;
    if (tookMs <= LONGEST_ANSWER_MS) clock.set(Number(seconds) * 1000 + Number(micros) / 1000 + tookMs / 2);
  };
  const look = async (): Promise<void> => {
    clearTimeout(timer);
    await ask().catch((error: Error) =>
      logger.debug({ error: error.message }, 'Redis did not tell its time'),
    );
    if (!isClosed) timer = setTimeout(() => void look(), LOOK_EVERY_MS).unref();
  };
  return {
    look,
    close() {
      isClosed = true;
      clearTimeout(timer);
      clock.off('wrong', onWrong).off('right', onRight);
      clock.forget();
    },
  };
}
