/** When a message may go to its network: after those before it, and within the rate of the network. */
import { setTimeout as wait } from 'node:timers/promises';
import { deadline, untilAborted } from 'soundpost-base/deadline';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import { LONGEST_WAIT_MS, type SendRate } from './send-rate.ts';

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
