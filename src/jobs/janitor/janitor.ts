/**
 * Removes what has had its time: expired uploads, results past their keeping time, files of attempts that lost, entries of
 * ended jobs in their tenants' indexes. It needs nobody to tell it anything: what is over is read from the records, and
 * a sweep that breaks off is made up for by the next one.
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
  /** Files of results and of lost attempts that were asked to be removed; some may have been gone already. */
  readonly files: number;
  readonly indexEntries: number;
  /** Of the storage: what writers have left that died. */
  readonly leftovers: number;
}

const LEASE = new RedisLease(ownKey, 'janitor');
/** A janitor that has died is replaced after this. */
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

  /** Sweeps now and then again after every `intervalMs`. Of several janitors on one Redis one works at a time. */
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

  /** One sweep; undefined when another janitor is at it, or the clock is wrong. */
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
        leftovers: (await this.#options.sweepStorage?.()) ?? 0,
      };
      if (Object.values(sweep).some((count) => count > 0)) {
        logger.info(sweep, 'swept');
      }
      return sweep;
    } finally {
      await LEASE.release(redis, holder);
    }
  }

  /** Stops after the step that is under way. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the janitor is closing'));
    clearTimeout(this.#timer);
    await this.#sweeping;
  }
}
