/**
 * Removes expired uploads and results, files of lost attempts, and index entries of ended jobs. It
 * needs no events: records show what is over, and the next sweep makes up for a failed one.
 */

import { redisClock } from 'soundpost-kit/redis/clock';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RedisLease } from 'soundpost-kit/redis/lease';
import type { JanitorOptions, SweepContext } from './context.ts';
import { sweepJobFiles, sweepJobIndexes } from './files.ts';
import { sweepUploads } from './uploads.ts';

/** What a sweep removed. */
interface Sweep {
  readonly uploads: number;
  /** Removal requests for files of results and lost attempts; some may already have been gone. */
  readonly files: number;
  readonly indexEntries: number;
  /** Storage leftovers: of dead writers, and what no record names. */
  readonly leftovers: number;
}

const LEASE = new RedisLease(ownKey, 'janitor');
/** A dead janitor is replaced after this. */
const LEASE_MS = 60_000;
const RENEW_AFTER_MS = 10_000;

export class Janitor {
  readonly #options: JanitorOptions;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<unknown> = Promise.resolve();

  constructor(options: JanitorOptions) {
    this.#options = options;
  }

  /** Sweeps now and every `intervalMs`. Only one janitor at a time works on a Redis. */
  start(intervalMs: number): void {
    const round = (): void => {
      this.#sweeping = this.sweep()
        .catch((error: unknown) => this.#options.logger.warn({ err: error }, 'the janitor broke off'))
        .then(() => {
          if (!this.#closing.signal.aborted) {
            this.#timer = setTimeout(round, intervalMs).unref();
          }
        });
    };
    round();
  }

  /** One sweep; undefined while another janitor sweeps, or if the clock is wrong. */
  async sweep(): Promise<Sweep | undefined> {
    const { redis, logger } = this.#options;
    if (!redisClock.isRight) {
      return undefined;
    }
    const { isTaken, holder } = await LEASE.take(redis, { leaseMs: LEASE_MS });
    if (!isTaken) {
      return undefined;
    }
    let renewedMs = performance.now();
    const proceed = async (): Promise<void> => {
      this.#closing.signal.throwIfAborted();
      if (!redisClock.isRight) {
        throw new Error('the clock is wrong');
      }
      if (performance.now() - renewedMs > RENEW_AFTER_MS) {
        if ((await LEASE.renew(redis, holder, LEASE_MS)) === 'lost') {
          throw new Error('the lease of the janitor was lost');
        }
        renewedMs = performance.now();
      }
    };
    const context: SweepContext = { ...this.#options, proceed };
    try {
      const sweep = {
        uploads: await sweepUploads(context),
        files: await sweepJobFiles(context),
        indexEntries: await sweepJobIndexes(context),
        leftovers: (await this.#options.sweepStorage?.(proceed)) ?? 0,
      };
      if (Object.values(sweep).some((count) => count > 0)) {
        logger.info(sweep, 'swept');
      }
      return sweep;
    } finally {
      await LEASE.release(redis, holder);
    }
  }

  /** Stops after the current step. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the janitor is closing'));
    clearTimeout(this.#timer);
    await this.#sweeping;
  }
}
