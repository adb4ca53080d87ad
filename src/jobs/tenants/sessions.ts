/**
 * Sessions of the console (decisions A6). A page has an opaque token in a cookie; Redis knows its
 * HMAC and which secret of which key it stands for, so neither opens anything for a reader of the
 * other. A session ends after 12 h, when it is ended, and when its key's secret is replaced.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { readHash, unlessUnreadable, withEdition } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import type { ClaimedKey } from './api-keys.ts';

export const SESSION_SECONDS = 12 * 60 * 60;

/** As a request shows it. */
export interface ConsoleSession {
  readonly token: string;
  readonly claim: ClaimedKey;
}

const StoredSession = z.object({ id: z.string(), mac: z.string() });

export class Sessions {
  readonly #redis: Redis;
  readonly #pepper: KeyObject;

  /** @param pepper HMAC key under which tokens are stored */
  constructor(redis: Redis, pepper: Buffer) {
    this.#redis = redis;
    this.#pepper = createSecretKey(pepper);
  }

  /** @param claim of a key that was checked @returns the token, for the cookie */
  async begin({ id, mac }: ClaimedKey): Promise<string> {
    const token = randomBytes(32).toString('base64url');
    const key = this.#keyOf(token);
    await this.#redis.multi().hset(key, withEdition({ id, mac })).expire(key, SESSION_SECONDS).exec();
    return token;
  }

  /** What the session's key claims to be; undefined if there is no such session. */
  find(token: string): Promise<ClaimedKey | undefined> {
    return unlessUnreadable(
      () => readHash(this.#redis, this.#keyOf(token), StoredSession),
      () => undefined,
    );
  }

  /** Keeps the session of the page that has replaced its own key's secret. */
  async follow(token: string, { mac }: ClaimedKey): Promise<void> {
    const key = this.#keyOf(token);
    // A session that has ended meanwhile must not come back without an expiry.
    if ((await this.#redis.exists(key)) === 1) {
      await this.#redis.multi().hset(key, 'mac', mac).expire(key, SESSION_SECONDS).exec();
    }
  }

  async end(token: string): Promise<void> {
    await this.#redis.del(this.#keyOf(token));
  }

  #keyOf(token: string): string {
    return ownKey('session', createHmac('sha256', this.#pepper).update(`session:${token}`).digest('hex'));
  }
}
