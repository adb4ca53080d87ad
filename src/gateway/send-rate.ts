/**
 * How many messages an instance may hand to its network within any 60 s (decisions B, SENDS_PER_MINUTE), so that a burst
 * gets no account banned. The times at which the last ones went, or will go, are kept in Redis: a restart forgets none.
 */

import type { Instance } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { TransportKind } from 'soundpost-contract/gateway-instances';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';

const WINDOW_MS = 60_000;
/** A send that would wait longer is refused. */
export const LONGEST_WAIT_MS = 60_000;

const reserveScript = loadScript(new URL('./lua/send-slots-reserve.lua', import.meta.url));

const Reserved = z.tuple([z.int(), z.coerce.number()]);

export type SendLimits = Readonly<Partial<Record<TransportKind, number>>>;

/** WhatsApp bans accounts that send quickly; servers of open networks throttle. The loopback network is our own. */
const defaultLimits: SendLimits = { whatsapp: 20, xmpp: 60 };

interface Slot {
  /** When the message may go, ms since 1970. */
  readonly atMs: number;
  /** Gives the slot back: the message was not sent. */
  release(): Promise<void>;
}

export class SendRate {
  readonly #redis: Redis;
  readonly #limits: SendLimits;

  /** @param limits messages a minute; 0 is no limit */
  constructor(redis: Redis, limits: SendLimits = {}) {
    this.#redis = redis;
    this.#limits = { ...defaultLimits, ...limits };
  }

  /**
   * The slot of the last of `messageIds`, which go out together. A message that has one already gets a new one.
   * Throws rate_limited when it lies too far ahead.
   */
  async reserve(instance: Instance, messageIds: readonly string[]): Promise<Slot> {
    const limit = this.#limits[instance.transport] ?? 0;
    const now = redisNow();
    if (limit === 0) {
      return { atMs: now, release: async () => undefined };
    }
    const key = gatewayKey('send-slots', instance.id);
    const [taken, atMs] = Reserved.parse(
      await reserveScript.run(
        this.#redis,
        [key],
        [limit, messageIds.length, now, WINDOW_MS, LONGEST_WAIT_MS, ...messageIds],
      ),
    );
    if (taken === 0) {
      throw rateLimited(limit, atMs - now - LONGEST_WAIT_MS);
    }
    return {
      atMs,
      release: async () => {
        await this.#redis.zrem(key, ...messageIds);
      },
    };
  }
}

function rateLimited(limit: number, waitMs: number): GatewayError {
  return new GatewayError(
    'rate_limited',
    `the instance may send ${limit} messages a minute and has more than a minute's worth waiting`,
    { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) },
  );
}
