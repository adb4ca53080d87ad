/** What was sent to a job's webhook: each notification, and each try at it (decisions D). */
import { type Delivery, DeliveryAttempt } from '../contract/answers.ts';
import { AnnouncementHash, deliveryStatus } from './announcement-state.ts';
import { attemptsKey, deliveriesKey } from './delivery-index.ts';
import { jobKey, queueKey } from './names.ts';
import { WebhookPayload } from './payloads.ts';
import type { Redis } from './redis.ts';

/** The notifications of a job, oldest first. */
export async function listDeliveries(redis: Redis, jobId: string): Promise<Delivery[]> {
  const index = await redis.hgetall(deliveriesKey(jobId));
  const deliveries = await Promise.all(
    Object.entries(index).map(async ([deliveryId, current]) => {
      const [raw, due, attempts] = await Promise.all([
        redis.hgetall(jobKey('webhook', current)),
        redis.zscore(queueKey('webhook', 'delayed'), current),
        redis.lrange(attemptsKey(deliveryId), 0, -1),
      ]);
      const hash = AnnouncementHash.parse(raw);
      const payload = hash.data === undefined ? undefined : WebhookPayload.parse(JSON.parse(hash.data));
      return payload && { payload, delivery: asDelivery(deliveryId, payload, hash, dueMs(due), attempts) };
    }),
  );
  return deliveries
    .filter((found) => found !== undefined)
    .sort((a, b) => a.payload.eventTimeMs - b.payload.eventTimeMs)
    .map(({ delivery }) => delivery);
}

/** BullMQ's score of a delayed job: the time in ms, times 4096, plus a counter. */
function dueMs(score: string | null): number | null {
  return score === null ? null : Math.floor(Number(score) / 4096);
}

function asDelivery(
  deliveryId: string,
  payload: WebhookPayload,
  hash: ReturnType<typeof AnnouncementHash.parse>,
  dueMs: number | null,
  attempts: readonly string[],
): Delivery {
  const status = deliveryStatus(hash);
  return {
    deliveryId,
    event: payload.event,
    status,
    // Null also while an attempt is under way.
    nextAttemptAt: dueMs === null ? null : new Date(dueMs).toISOString(),
    attempts: attempts.map((text) => DeliveryAttempt.parse(JSON.parse(text))),
  };
}

export async function logAttempt(
  redis: Redis,
  deliveryId: string,
  attempt: DeliveryAttempt,
  keepSeconds: number,
): Promise<void> {
  const key = attemptsKey(deliveryId);
  await redis.multi().rpush(key, JSON.stringify(attempt)).expire(key, Math.ceil(keepSeconds)).exec();
}
