/**
 * One request at a time for each upload, across all API processes: a lease in Redis. As tus asks,
 * the newer request wins: the older one is often a connection that broke unnoticed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lock, Locker, RequestRelease } from '@tus/server';
import type { Logger } from 'soundpost-base/logger';
import { ServiceError } from 'soundpost-contract/errors';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { RedisLease } from 'soundpost-kit/redis/lease';
import { uploadLease } from '../../jobs/uploads/record.ts';
import { TusRefusal } from './checksum.ts';

/** How long a request has to finish after it was asked to give way. */
export const GIVE_WAY_MS = 1000;

const LEASE_MS = 10_000;
const RENEW_MS = 500;
/** A holder cut off from Redis for so long gives way while the lease is surely its own. */
const UNHEARD_MS = LEASE_MS - GIVE_WAY_MS - 2000;
const ASK_AGAIN_MS = 100;
const WAIT_MS = 5000;
const HTTP_LOCKED = 423;
const RETRY_AFTER_SECONDS = 1;

export class UploadLocker implements Locker {
  readonly #redis: Redis;
  readonly #logger: Logger;

  constructor(redis: Redis, logger: Logger) {
    this.#redis = redis;
    this.#logger = logger;
  }

  newLock(file: string): Lock {
    return new UploadLock(this.#redis, this.#logger, file);
  }
}

class UploadLock implements Lock {
  readonly #redis: Redis;
  readonly #logger: Logger;
  readonly #file: string;
  readonly #lease: RedisLease;
  readonly #released = new AbortController();
  /** Since it was locked. */
  #holder: string | undefined;

  constructor(redis: Redis, logger: Logger, file: string) {
    this.#redis = redis;
    this.#logger = logger;
    this.#file = file;
    this.#lease = uploadLease(file);
  }

  /** Throws a refusal with status 423 when the holder does not give way in time. */
  async lock(gone: AbortSignal, giveWay: RequestRelease): Promise<void> {
    const untilMs = Date.now() + WAIT_MS;
    for (;;) {
      const { isTaken, holder } = await this.#lease.take(this.#redis, { leaseMs: LEASE_MS, asking: true });
      if (isTaken) {
        this.#holder = holder;
        void this.#keep(holder, giveWay);
        return;
      }
      if (Date.now() > untilMs) {
        throw new TusRefusal(
          HTTP_LOCKED,
          new ServiceError('SERVICE_UNAVAILABLE', 'another request is writing to this upload', {
            retryAfterSeconds: RETRY_AFTER_SECONDS,
          }),
        );
      }
      await sleep(ASK_AGAIN_MS, undefined, { signal: gone });
    }
  }

  async #keep(holder: string, giveWay: RequestRelease): Promise<void> {
    const { signal } = this.#released;
    let heardMs = Date.now();
    while (await sleep(RENEW_MS, true, { signal, ref: false }).catch(() => false)) {
      const state = await this.#lease.renew(this.#redis, holder, LEASE_MS).catch(() => 'unheard');
      if (state === 'held') {
        heardMs = Date.now();
      } else if (state !== 'unheard' || Date.now() - heardMs > UNHEARD_MS) {
        await giveWay();
      }
    }
  }

  async unlock(): Promise<void> {
    this.#released.abort();
    if (this.#holder === undefined) return;
    // Not awaited: the answer must not hang with Redis. An unreleased lease expires by itself; the
    // work done under it stands.
    this.#lease.release(this.#redis, this.#holder).catch((error: unknown) => {
      this.#logger.warn({ file: this.#file, err: error }, 'the lease of an upload could not be given back');
    });
  }
}
