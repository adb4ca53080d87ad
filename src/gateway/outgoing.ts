/** When a message may go to its network: after those before it, and within the rate of the network. */
import { setTimeout as wait } from 'node:timers/promises';
import { deadline, untilAborted } from 'soundpost-base/deadline';
import type { Instance } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { TransportKind } from 'soundpost-contract/gateway-instances';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';

// How many messages an instance may hand to its network within any 60 s (decisions B,
// SENDS_PER_MINUTE), so that a burst gets no account banned. The times at which the last ones went,
// or will go, are kept in Redis: a restart forgets none.

const WINDOW_MS = 60_000;
/** A send that would wait longer is refused. */
const LONGEST_WAIT_MS = 60_000;

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

/** Resolves when the slot has come and the turn too. Throws rate_limited when those before take too long. */
export async function untilDue(
  turn: Turn,
  slot: Awaited<ReturnType<SendRate['reserve']>>,
  signal: AbortSignal,
): Promise<void> {
  await until(slot.atMs, signal);
  using limit = deadline(LONGEST_WAIT_MS, { signal });
  try {
    await turn.come(limit.signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new GatewayError('rate_limited', 'the messages before this one take more than a minute', {
      retryAfterSeconds: 10,
      cause: error,
    });
  }
}

export async function until(atMs: number, signal: AbortSignal): Promise<void> {
  const leftMs = atMs - redisNow();
  if (leftMs > 0) {
    await wait(leftMs, undefined, { signal });
  }
}

/** What callers see when the gateway stops, or another process of it takes over, before the network has their message. */
export function interrupted({ reason }: AbortSignal, cause: unknown): GatewayError {
  if (reason instanceof GatewayError) {
    return reason;
  }
  return new GatewayError('service_unavailable', 'the gateway is stopping; send the request again', {
    retryAfterSeconds: 5,
    cause,
  });
}

/** What callers see when nobody knows whether the network got their message, or all of their messages. */
export function inDoubt(cause: unknown): GatewayError {
  return new GatewayError(
    'timeout',
    'another process of the gateway took over while the message was on its way; whether it was sent is not known',
    { retryAfterSeconds: 1, cause },
  );
}

// The order in which an instance's messages go out. Requests are prepared side by side, but each
// hands its message to the network only when those that joined before it are through, whatever they
// took and however they ended.

export interface Turn {
  /** Resolves when it is this one's turn; rejects with the signal's reason. */
  come(signal: AbortSignal): Promise<void>;
  /** Lets the next one go. Has to be called whatever happened. */
  leave(): void;
}

export class OutgoingOrder {
  /** What the next one of an instance waits for. */
  readonly #last = new Map<string, Promise<void>>();

  /** Takes a place in the line, in the order of the calls. */
  join(instanceId: string): Turn {
    const before = this.#last.get(instanceId) ?? Promise.resolve();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    // Whoever leaves early does not let anybody past those that are still before it.
    const through = before.then(() => left);
    this.#last.set(instanceId, through);
    void through.then(() => {
      if (this.#last.get(instanceId) === through) {
        this.#last.delete(instanceId);
      }
    });
    return { come: (signal) => untilAborted(before, signal), leave };
  }
}
