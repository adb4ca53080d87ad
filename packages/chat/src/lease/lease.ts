/**
 * The right to act for the gateway, from taking it until it is lost; one that was lost never comes back. It ends when the lease may
 * have run out by this process' own clocks, whether anybody noticed or not.
 */
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { LeaseClock, type Moment } from './lease-clock.ts';

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
