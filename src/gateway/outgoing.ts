/** Decides when a message can go to its network: in order, and within the rate limit. */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Response } from 'express';
import { deadline, untilAborted, within } from 'soundpost-base/deadline';
import type { Instance } from 'soundpost-chat/instances';
import type { MessageLog, MessageRecord } from 'soundpost-chat/message-log';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { OutgoingText, Session } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { TransportKind } from 'soundpost-contract/gateway-instances';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { loadScript } from 'soundpost-kit/redis/script';
import { untilTaken } from 'soundpost-kit/redis/until-taken';
import { z } from 'zod';

// Messages that an instance can send in any 60 s (decisions B, SENDS_PER_MINUTE), so that a burst
// gets no account banned. Past and planned send times are in Redis: a restart forgets none.

const WINDOW_MS = 60_000;
/** A send that would wait longer is rejected. */
const LONGEST_WAIT_MS = 60_000;
/** Longer, one chat would hold up the instance's others, which keep their order. */
const LONGEST_WAIT_FOR_CHAT_MS = 5000;
const UNMARKED_WITHIN_MS = 500;

const reserveScript = loadScript(new URL('./lua/send-slots-reserve.lua', import.meta.url));

const Reserved = z.tuple([z.int(), z.coerce.number()]);

export type SendLimits = Readonly<Partial<Record<TransportKind, number>>>;

/** WhatsApp bans accounts that send fast; open networks throttle. Loopback is our own. */
const defaultLimits: SendLimits = { whatsapp: 20, xmpp: 60, telegram: 60, 'whatsapp-cloud': 60 };

/**
 * Messages a minute into one chat. Telegram: "not more than 20 messages per minute to the same
 * group" (core.telegram.org/bots/faq). The Cloud API answers 131056 to a number that gets more than
 * one in 6 s (developers.facebook.com/docs/whatsapp/cloud-api/overview "Pair rate limits").
 */
const chatLimits: Readonly<Partial<Record<TransportKind, { each: number; groupsOnly: boolean }>>> = {
  telegram: { each: 20, groupsOnly: true },
  'whatsapp-cloud': { each: 10, groupsOnly: false },
};

interface Slot {
  /** When the message can be sent, ms since 1970. */
  readonly atMs: number;
  /** Returns the slot of a message that was not sent. */
  release(): Promise<void>;
}

export class SendRate {
  readonly #redis: Redis;
  readonly #limits: SendLimits;

  /** @param limits messages per minute; 0: no limit */
  constructor(redis: Redis, limits: SendLimits = {}) {
    this.#redis = redis;
    this.#limits = { ...defaultLimits, ...limits };
  }

  /**
   * The slot of the last of `messages`, which are sent together. A known message gets a new one.
   * Throws rate_limited if it is too far ahead, for one chat at once after 5 s; then none is taken.
   */
  async reserve(
    instance: Instance,
    messages: readonly Pick<OutgoingText, 'messageId' | 'chat'>[],
  ): Promise<Slot> {
    const limit = this.#limits[instance.transport] ?? 0;
    if (limit === 0) {
      return { atMs: redisNow(), release: async () => undefined };
    }
    const { each, groupsOnly } = chatLimits[instance.transport] ?? { each: 0, groupsOnly: true };
    const limited = messages.filter(({ chat }) => each > 0 && (chat.isGroup || !groupsOnly));
    const slots: Slot[] = [];
    const release = async (): Promise<void> => {
      await Promise.all(slots.map((slot) => slot.release()));
    };
    try {
      for (const [jid, own] of Map.groupBy(limited, ({ chat }) => chat.jid)) {
        slots.push(await this.#reserve([instance.id, jid], own, Math.min(each, limit)));
      }
      slots.push(await this.#reserve([instance.id], messages, limit));
    } catch (error) {
      await release();
      throw error;
    }
    return { atMs: Math.max(...slots.map(({ atMs }) => atMs)), release };
  }

  async #reserve(
    whose: readonly string[],
    messages: readonly { readonly messageId: string }[],
    limit: number,
  ): Promise<Slot> {
    const now = redisNow();
    const messageIds = messages.map(({ messageId }) => messageId);
    const key = gatewayKey('send-slots', ...whose);
    const isOneChat = whose.length > 1;
    const longestMs = isOneChat ? LONGEST_WAIT_FOR_CHAT_MS : LONGEST_WAIT_MS;
    const [taken, atMs] = Reserved.parse(
      await reserveScript.run(
        this.#redis,
        [key],
        [limit, messageIds.length, now, WINDOW_MS, longestMs, ...messageIds],
      ),
    );
    if (taken === 0) {
      throw rateLimited(isOneChat, limit, atMs - now - longestMs);
    }
    return {
      atMs,
      release: async () => {
        await this.#redis.zrem(key, ...messageIds);
      },
    };
  }
}

function rateLimited(isOneChat: boolean, limit: number, waitMs: number): GatewayError {
  const what = isOneChat
    ? `${limit} messages a minute into one chat, and has sent them`
    : `${limit} messages a minute and has more than a minute's worth waiting`;
  return new GatewayError('rate_limited', `the instance may send ${what}`, {
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  });
}

/** Resolves once slot and turn have come. Throws rate_limited if earlier messages take too long. */
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
    throw new GatewayError('rate_limited', 'the queue for this instance is longer than a minute', {
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

/** Nobody waits for the answer any more: the caller would send the message again. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

/** Aborted when the caller hangs up before its answer was sent whole. */
export function callerGone(response: Response): AbortSignal {
  const gone = new AbortController();
  const notice = (): void => {
    if (!response.writableFinished) gone.abort(new CallerGone('the caller has hung up'));
  };
  if (response.destroyed) notice();
  else response.once('close', notice);
  return gone.signal;
}

/** Error when the caller leaves, or the gateway stops, before the network has the message. */
export function interrupted({ reason }: AbortSignal, cause: unknown): Error {
  if (reason instanceof GatewayError || reason instanceof CallerGone) {
    return reason;
  }
  return new GatewayError('service_unavailable', 'the gateway is stopping; send the request again', {
    retryAfterSeconds: 5,
    cause,
  });
}

/** Error when it is unknown whether the network got all of the messages. */
export function inDoubt(cause: unknown): GatewayError {
  return new GatewayError(
    'timeout',
    'another gateway process took over while the message was being sent; it is not known whether it was sent',
    { retryAfterSeconds: 1, cause },
  );
}

/**
 * Error for a send whose earlier attempt was handed over, on a network that knows no id of ours.
 */
export function mayBeSent(): GatewayError {
  return new GatewayError(
    'timeout',
    'the message was handed to the network before and its answer was lost, so it is not sent again; whether it arrived is not known',
    { retryable: false },
  );
}

/**
 * Hands a message over. On a network that knows no id of ours it is marked first, so that it goes
 * out once however often the caller repeats it and whenever this process dies.
 */
export async function handOver(
  log: Pick<MessageLog, 'mark' | 'unmark'>,
  { knowsNoIds }: Pick<Session, 'knowsNoIds'>,
  record: MessageRecord,
  hand: () => Promise<void>,
): Promise<void> {
  if (!knowsNoIds) return hand();
  const token = randomUUID();
  let isHanded = false;
  try {
    if (!(await log.mark(record, token))) throw mayBeSent();
    isHanded = true;
    await hand();
  } catch (error) {
    // Only a certain refusal takes the mark away, and an answer of Redis that did not come.
    if (!isHanded || (error instanceof GatewayError && error.code !== 'timeout')) {
      const unmarking = untilTaken(() => log.unmark(record, token));
      await within(UNMARKED_WITHIN_MS, () => unmarking).catch(() => undefined);
    }
    throw error;
  }
}

// The order of an instance's messages. Requests are prepared in parallel, but each sends only after
// those that joined before it have finished, however long they took or however they ended.

export interface Turn {
  /** Resolves when its turn comes; rejects with the signal's reason. */
  come(signal: AbortSignal): Promise<void>;
  /** Lets the next one go. Must always be called. */
  leave(): void;
}

export class OutgoingOrder {
  /** What the instance's next message waits for. */
  readonly #last = new Map<string, Promise<void>>();

  /** Joins the queue, in the order of the calls. */
  join(instanceId: string): Turn {
    const before = this.#last.get(instanceId) ?? Promise.resolve();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    // Leaving early must not let others overtake those still ahead.
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
