/** What event streams share: the number that a key may have open (decisions A6), and the readings of a job that several watch. */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ServiceError } from 'soundpost-contract/errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';

const RETRY_AFTER_SECONDS = 15;

const hold = loadScript(new URL('./lua/event-stream-hold.lua', import.meta.url));

interface OpenStream {
  /** To be called every 15 s or so. */
  renew(): void;
  close(): void;
}

/**
 * Counts on all processes of the API together.
 * @throws ServiceError RATE_LIMITED when the key has as many open as it may have
 */
export async function openStream(redis: Redis, keyId: string, limit: number): Promise<OpenStream> {
  const streams = ownKey('streams', keyId);
  const stream = randomUUID();
  const take = (): Promise<unknown> => hold.run(redis, [streams], [stream, limit]);
  if ((await take()) !== 1) {
    throw new ServiceError('RATE_LIMITED', `this key may have ${limit} event streams open`, {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
  // What cannot be told to Redis now runs out there.
  const quietly = (told: Promise<unknown>): void => void told.catch(() => undefined);
  return {
    renew: () => quietly(take()),
    close: () => quietly(redis.zrem(streams, stream)),
  };
}

/** How many the key has open, on all processes of the API together. */
export async function openStreams(redis: Redis, keyId: string): Promise<number> {
  return redis.zcount(ownKey('streams', keyId), Math.floor(redisNow() / 1000), '+inf');
}

/** Answers all who ask within one turn of the event loop with one reading, which begins after they asked. */
export class SharedReads<Value> {
  readonly #waiting = new Map<string, Promise<Value>>();

  /** @param read by which of the askers' functions it is read does not matter */
  read(id: string, read: () => Promise<Value>): Promise<Value> {
    const shared = this.#waiting.get(id) ?? this.#soon(id, read);
    this.#waiting.set(id, shared);
    return shared;
  }

  async #soon(id: string, read: () => Promise<Value>): Promise<Value> {
    await nextTurn();
    this.#waiting.delete(id);
    return read();
  }
}
