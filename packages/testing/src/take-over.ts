/** The right to act for the gateway, for tests of what works with it below a whole gateway. */
import { gatewayLease, Lease, thisMoment } from 'soundpost-chat/lease/lease';
import type { Redis } from 'soundpost-kit/redis/connection';

const HOUR_MS = 60 * 60_000;

/** Takes the lease from whoever has it, as a process does from one that has died. */
export async function takeOver(redis: Redis): Promise<Lease> {
  await redis.del(gatewayLease.key);
  const askedAt = thisMoment();
  const { holder } = await gatewayLease.take(redis, { leaseMs: HOUR_MS });
  return new Lease(holder, HOUR_MS, askedAt);
}
