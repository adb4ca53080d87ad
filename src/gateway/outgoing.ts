/** When a message may go to its network: after those before it, and within the rate of the network. */
import { setTimeout as wait } from 'node:timers/promises';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Turn } from './outgoing-order.ts';
import { LONGEST_WAIT_MS } from './send-rate.ts';
import type { SendRate } from './send-rate.ts';

/** Resolves when the slot has come and the turn too. Throws rate_limited when those before take too long. */
export async function untilDue(turn: Turn, slot: Awaited<ReturnType<SendRate['reserve']>>, signal: AbortSignal): Promise<void> {
  await until(slot.atMs, signal);
  const tooLong = AbortSignal.timeout(LONGEST_WAIT_MS);
  try {
    await turn.come(AbortSignal.any([signal, tooLong]));
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
