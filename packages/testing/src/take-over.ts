/** The right to act for the gateway, for tests of what works with it below a whole gateway. */
import { randomUUID } from 'node:crypto';
import { Lease, thisMoment } from 'soundpost-chat/lease/lease';
import { LEASE, takeLease } from 'soundpost-chat/lease/lease-record';
import type { Redis } from 'soundpost-kit/redis/connection';

const HOUR_MS = 60 * 60_000;

/** Takes the lease from whoever has it, as a process does from one that has died. */
export async function takeOver(redis: Redis): Promise<Lease> {
  await redis.del(LEASE);
  const askedAt = thisMoment();
  const { holder } = await takeLease(redis, { id: randomUUID(), home: '' }, HOUR_MS);
  return new Lease(holder, HOUR_MS, askedAt);
}
