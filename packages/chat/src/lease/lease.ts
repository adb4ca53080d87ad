/**
 * The right to act for the gateway, from taking it until it is lost; one that was lost never comes back. It ends when the lease may
 * have run out by this process' own clocks, whether anybody noticed or not.
 */
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { RedisLease } from 'soundpost-kit/redis/lease';
import { gatewayKey } from '../redis-keys.ts';

/** Which process of the gateway serves. Its holder is `<fencing token> <id of the process> <home of the process>`. */
export const gatewayLease = new RedisLease(gatewayKey);

export class Lease {
  /** As Redis has it, with the fencing token. */
  readonly holder: string;
  readonly #clock: LeaseClock;
  readonly #lost = new AbortController();

  /**
   * @param lastsMs how long it lasts from the moment in which it was asked for
   * @param askedAt before the question was sent
   */
  constructor(holder: string, lastsMs: number, askedAt: Moment) {
    this.holder = holder;
    this.#clock = new LeaseClock(lastsMs, () => this.lose());
    this.extend(askedAt);
  }

  /** Aborted with a GatewayError once another process may act instead. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get isValid(): boolean {
    return !this.lost.aborted && this.#clock.lasts();
  }

  /**
   * To be called right before anything leaves for a network: it asks no one, so nothing comes between.
   * Throws standby.
   */
  assert(): void {
    if (!this.isValid) {
      throw standby();
    }
  }

  /** @param askedAt before the renewal was sent */
  extend(askedAt: Moment): void {
    this.#clock.extend(askedAt);
  }

  lose(): void {
    this.#clock.stop();
    this.#lost.abort(standby());
  }
}

/** Long enough for a balancer to have noticed, and for another process to have taken over where one was ended. */
export const STANDBY_RETRY_SECONDS = 5;

/** What callers see of a process that does not serve: the request was not taken. */
export function standby(): GatewayError {
  return new GatewayError(
    'standby',
    'this process of the gateway stands by while another one serves; send the request again',
    { retryAfterSeconds: STANDBY_RETRY_SECONDS },
  );
}

// When a lease ends for its holder, by clocks that it needs nobody for. It counts from before the
// renewal was asked for, so it ends no later than Redis' own.

interface Moment {
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
