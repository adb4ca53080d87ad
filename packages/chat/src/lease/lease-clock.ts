/**
 * When a lease ends for its holder, by clocks that it needs nobody for. It counts from before the renewal was asked for, so it
 * ends no later than Redis' own.
 */

export interface Moment {
  /** ms; what no one sets. It may stand still while a machine sleeps. */
  readonly monotonic: number;
  /** ms since 1970. */
  readonly wall: number;
}

export const thisMoment = (): Moment => ({ monotonic: performance.now(), wall: Date.now() });

export class LeaseClock {
  readonly #forMs: number;
  readonly #onEnd: () => void;
  #ends: Moment = { monotonic: 0, wall: 0 };
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param forMs from the question on
   * @param onEnd called when it has ended; whoever asks `lasts` may know it earlier
   */
  constructor(forMs: number, onEnd: () => void) {
    this.#forMs = forMs;
    this.#onEnd = onEnd;
  }

  /** @param askedAt before the renewal was sent */
  extend({ monotonic, wall }: Moment): void {
    this.#ends = { monotonic: monotonic + this.#forMs, wall: wall + this.#forMs };
    this.#await();
  }

  lasts(): boolean {
    const { monotonic, wall } = thisMoment();
    return monotonic < this.#ends.monotonic && wall < this.#ends.wall;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Timers count in whole ms from a moment that may lie before the call, so that one can be early by two: then the rest is waited for. */
  #await(): void {
    clearTimeout(this.#timer);
    const leftMs = this.#ends.monotonic - performance.now();
    const end = (): void => (this.lasts() ? this.#await() : this.#onEnd());
    this.#timer = setTimeout(end, Math.max(0, leftMs) + 1).unref();
  }
}
