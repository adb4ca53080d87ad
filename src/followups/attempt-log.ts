/** The tries of a delivery: a list of ours, since BullMQ keeps the last one only. */

import { DeliveryAttempt } from 'soundpost-contract/deliveries';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { z } from 'zod';

const LoggedAttempt = DeliveryAttempt.extend({
  /** When the next try was due; absent when there was none. */
  nextAtMs: z.number().optional(),
});
export type LoggedAttempt = z.infer<typeof LoggedAttempt>;

function attemptsKey(deliveryId: string): string {
  return ownKey('attempts', deliveryId);
}

export async function logAttempt(
  redis: Redis,
  deliveryId: string,
  attempt: LoggedAttempt,
  keepSeconds: number,
): Promise<void> {
  const key = attemptsKey(deliveryId);
  await redis.multi().rpush(key, JSON.stringify(attempt)).expire(key, Math.ceil(keepSeconds)).exec();
}

/** Oldest first. */
export async function readAttempts(redis: Redis, deliveryId: string): Promise<LoggedAttempt[]> {
  const texts = await redis.lrange(attemptsKey(deliveryId), 0, -1);
  return texts.map((text) => LoggedAttempt.parse(JSON.parse(text)));
}

export function countAttempts(redis: Redis, deliveryId: string): Promise<number> {
  return redis.llen(attemptsKey(deliveryId));
}
