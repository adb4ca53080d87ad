/**
 * The right to act for the gateway. A lost lease never comes back. It ends when it may have expired
 * by this process's own clocks, even if nothing has noticed yet.
 */

import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Redis } from 'soundpost-kit/redis/connection';
import { RedisLease } from 'soundpost-kit/redis/lease';
import { RedisScript, readScript } from 'soundpost-kit/redis/script';
import { gatewayKey } from '../redis-keys.ts';

/** The serving process. Holder: `<fencing token> <id of the process> <home of the process>`. */
export const gatewayLease = new RedisLease(gatewayKey);

export class Lease {
  /** As stored in Redis, with the fencing token. */
  readonly holder: string;
  readonly #clock: LeaseClock;
  readonly #lost = new AbortController();

  /**
   * @param lastsMs duration, from the moment of the request
   * @param askedAt before the request was sent
   */
  constructor(holder: string, lastsMs: number, askedAt: Moment) {
    this.holder = holder;
    this.#clock = new LeaseClock(lastsMs, () => this.lose());
    this.extend(askedAt);
  }

  /** Aborted with a GatewayError once another process may act. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get isValid(): boolean {
    return !this.lost.aborted && this.#clock.lasts();
  }

  /**
   * Call this right before sending to a network. It is synchronous, so nothing can come between.
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

/** Enough for a load balancer to notice, and for another process to take over. */
export const STANDBY_RETRY_SECONDS = 5;

/** The error of a process that does not serve: the request was not handled. */
export function standby(): GatewayError {
  return new GatewayError(
    'standby',
    'this gateway process is on standby while another one serves; send the request again',
    { retryAfterSeconds: STANDBY_RETRY_SECONDS },
  );
}

// When a lease ends for its holder, by local clocks alone. The time counts from before the renewal
// request, so the lease ends here no later than in Redis.

interface Moment {
  /** ms; not adjustable. It may stop while the machine sleeps. */
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
   * @param forMs from the request on
   * @param onEnd called at the end; `lasts` may turn false earlier
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

  /** A timer may fire up to 2 ms early, so the rest is waited for. */
  #await(): void {
    clearTimeout(this.#timer);
    const leftMs = this.#ends.monotonic - performance.now();
    const end = (): void => (this.lasts() ? this.#await() : this.#onEnd());
    this.#timer = setTimeout(end, Math.max(0, leftMs) + 1).unref();
  }
}

// A Lua script that writes only while its caller holds the gateway's lease. The script checks this
// itself, so that a process that was paused before the call cannot write after losing the lease.

export const NOT_HOLDER = 'NOTHOLDER';

const FENCE = readScript(new URL('./lua/fence.lua', import.meta.url));

export class FencedScript {
  readonly #script: RedisScript;

  /** @param source with its own KEYS and ARGV; `own` is the number of its ARGV */
  constructor(source: string) {
    this.#script = new RedisScript(`${FENCE}${source}`);
  }

  /** Throws standby if another process has the lease, and marks this lease as lost. */
  async run(
    redis: Redis,
    lease: Lease,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    lease.assert();
    try {
      return await this.#script.run(redis, [...keys, gatewayLease.key], [...args, lease.holder]);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith(NOT_HOLDER)) {
        lease.lose();
        throw standby();
      }
      throw error;
    }
  }
}

/** @param file of a script that counts its own KEYS and ARGV, ignoring the fence's */
export function loadFencedScript(file: URL): FencedScript {
  return new FencedScript(readScript(file));
}
