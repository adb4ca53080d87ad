/** Which notifications a job has, and where the log of each lies. */
import { ownKey } from './names.ts';
import type { Redis } from './redis.ts';

/** A hash: delivery id → id of the BullMQ job that makes it now (a replay is another one). */
export function deliveriesKey(jobId: string): string {
  return ownKey('deliveries', jobId);
}

/** A list of tries, oldest first. */
export function attemptsKey(deliveryId: string): string {
  return ownKey('attempts', deliveryId);
}

/** The BullMQ job that makes the delivery, or made it last. */
export async function currentDeliveryJob(redis: Redis, jobId: string, deliveryId: string): Promise<string> {
  return (await redis.hget(deliveriesKey(jobId), deliveryId)) ?? deliveryId;
}
