/**
 * Elects the gateway process that serves. The lease's holder is active and renews it; the others
 * stand by. The active part is built anew each time, so that no old state acts under a new lease.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'soundpost-base/logger';
import { fateOf, homeOfThisProcess } from 'soundpost-base/process-home';
import type { Redis } from 'soundpost-kit/redis/connection';
import { gatewayLease, Lease, thisMoment } from './lease.ts';

interface LeaseTiming {
  /** How long the active process may be silent before another takes over, ms. */
  readonly leaseMs: number;
  /** How often the active process renews its lease, and the others try to take it, ms. */
  readonly retryMs: number;
  /** A process stops acting this long before its lease can end, ms. */
  readonly marginMs: number;
}

const defaultTiming: LeaseTiming = { leaseMs: 8000, retryMs: 500, marginMs: 2000 };

/** Set by tests. */
export interface ElectionSetting {
  readonly timing?: Partial<LeaseTiming> | undefined;
  /** Default: this process's own, so that others on this machine see it die (process-home.ts). */
  readonly home?: string | undefined;
}

interface ElectionOptions extends ElectionSetting {
  readonly redis: Redis;
  readonly logger: Logger;
}

/** Builds and starts what only the active process runs. */
type Activate<Active> = (lease: Lease) => Promise<Active>;

export class Election<Active extends { close(): Promise<void> }> {
  readonly #options: ElectionOptions;
  readonly #timing: LeaseTiming;
  readonly #id = randomUUID();
  readonly #closing = new AbortController();
  readonly #decided = Promise.withResolvers<void>();
  #active: Active | undefined;
  #running: Promise<void> | undefined;
  #isFailing = false;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#timing = { ...defaultTiming, ...options.timing };
  }

  /** Undefined while this process stands by. */
  get active(): Active | undefined {
    return this.#active;
  }

  /** Resolves when this process is active or stands by. Rejects if the first attempt fails. */
  async start(activate: Activate<Active>): Promise<void> {
    const home = this.#options.home ?? (await homeOfThisProcess());
    this.#running = this.#run(home, activate);
    await this.#decided.promise;
  }

  /** Closes the active part and releases the lease, so that another process can take over. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(home: string, activate: Activate<Active>): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const lease = await this.#take(home);
        if (lease !== undefined) {
          await this.#serve(lease, activate);
        }
        this.#decided.resolve();
        this.#isFailing = false;
      } catch (error) {
        this.#decided.reject(error);
        this.#note(error, 'this process of the gateway can neither serve nor stand by');
      }
      await wait(this.#timing.retryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #take(home: string): Promise<Lease | undefined> {
    const { redis, logger } = this.#options;
    const { leaseMs, marginMs } = this.#timing;
    const askedAt = thisMoment();
    const who = `${this.#id} ${home}`;
    const { isTaken, holder } = await gatewayLease.take(redis, { leaseMs, who });
    if (isTaken) {
      return new Lease(holder, leaseMs - marginMs, askedAt);
    }
    if ((await fateOf(homeOf(holder))) === 'dead') {
      logger.info('the process of this machine that served has died');
      await gatewayLease.release(redis, holder);
      return this.#take(home);
    }
    return undefined;
  }

  /** Resolves when the lease is lost, or released because this process ends. */
  async #serve(lease: Lease, activate: Activate<Active>): Promise<void> {
    const { redis, logger } = this.#options;
    const renewing = this.#renew(lease);
    let active: Active | undefined;
    try {
      active = await activate(lease);
      this.#active = active;
      this.#decided.resolve();
      logger.info('this process of the gateway serves');
      const ending = AbortSignal.any([lease.lost, this.#closing.signal]);
      if (!ending.aborted) {
        await once(ending, 'abort');
      }
    } finally {
      this.#active = undefined;
      if (lease.lost.aborted) {
        logger.warn('this gateway process lost its lease and is on standby');
      }
      // Keep the lease until then: the next holder must find the accounts free on their networks.
      await active?.close().catch((error: unknown) => logger.error({ err: error }, 'closing failed'));
      lease.lose();
      await renewing;
      await gatewayLease
        .release(redis, lease.holder)
        .catch((error: unknown) => logger.warn({ err: error }, 'the lease was not given back'));
    }
  }

  /** Resolves when the lease is lost. */
  async #renew(lease: Lease): Promise<void> {
    const { leaseMs, retryMs } = this.#timing;
    for (;;) {
      await wait(retryMs, undefined, { signal: lease.lost }).catch(() => undefined);
      if (!lease.isValid) {
        return lease.lose();
      }
      const askedAt = thisMoment();
      try {
        if ((await gatewayLease.renew(this.#options.redis, lease.holder, leaseMs)) === 'lost') {
          return lease.lose();
        }
        lease.extend(askedAt);
        this.#isFailing = false;
      } catch (error) {
        this.#note(error, 'the lease of the gateway could not be renewed');
      }
    }
  }

  /** Logs a Redis outage once. */
  #note(error: unknown, message: string): void {
    if (!this.#isFailing && !this.#closing.signal.aborted) {
      this.#options.logger.warn({ err: error }, message);
    }
    this.#isFailing = true;
  }
}

/** The location of the lease's holder; see process-home.ts. */
function homeOf(holder: string): string {
  return holder.split(' ').slice(2).join(' ');
}
