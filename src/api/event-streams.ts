/**
 * Limits a key's open requests, including event streams (decisions A4 and A6). All requests that
 * follow a job share one read of it.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RequestBudget } from 'soundpost-kit/redis/request-budget';
import { loadScript } from 'soundpost-kit/redis/script';
import { LimitReached } from './limit-reached.ts';

const RETRY_AFTER_SECONDS = 15;

const hold = loadScript(new URL('./lua/event-stream-hold.lua', import.meta.url));

interface OpenStream {
  /** Must be called about every 15 s. */
  renew(): void;
  close(): void;
}

const held = {
  event_streams: { name: 'streams', rule: 'event streams open' },
  waiting_requests: { name: 'waiting', rule: 'requests waiting for the end of a job' },
} as const;

/** Counts all API processes. @throws LimitReached */
export async function openStream(
  redis: Redis,
  kind: keyof typeof held,
  keyId: string,
  limit: number,
): Promise<OpenStream> {
  const { name, rule } = held[kind];
  const streams = ownKey(name, keyId);
  const stream = randomUUID();
  const take = (): Promise<unknown> => hold.run(redis, [streams], [stream, limit]);
  if ((await take()) !== 1) {
    throw new LimitReached(kind, `this key may have ${limit} ${rule}`, RETRY_AFTER_SECONDS);
  }
  // If Redis misses this, the entry expires by itself.
  const quietly = (sent: Promise<unknown>): void => void sent.catch(() => undefined);
  return {
    renew: () => quietly(take()),
    close: () => quietly(redis.zrem(streams, stream)),
  };
}

/** The key's open streams across all API processes. */
export async function openStreams(redis: Redis, keyId: string): Promise<number> {
  return redis.zcount(ownKey('streams', keyId), Math.floor(redisNow() / 1000), '+inf');
}

/** Shares one read among all callers in a turn of the event loop; it starts after they asked. */
export class SharedReads<Value> {
  readonly #waiting = new Map<string, Promise<Value>>();

  /** @param read any caller's function serves; one of them is used */
  read(id: string, read: () => Promise<Value>): Promise<Value> {
    const shared = this.#waiting.get(id) ?? RequestBudget.outside(() => this.#soon(id, read));
    this.#waiting.set(id, shared);
    return shared;
  }

  async #soon(id: string, read: () => Promise<Value>): Promise<Value> {
    await nextTurn();
    this.#waiting.delete(id);
    return read();
  }
}
