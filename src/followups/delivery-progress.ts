/** How far a delivery is, as its owner is shown it: from the job that makes it and from the log of its tries. */
import type { DeliveryProgress } from 'soundpost-contract/deliveries';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { LoggedAttempt } from './attempt-log.ts';
import type { StoredDelivery } from './delivery-queue.ts';

export function deliveryProgress(
  { status, data }: StoredDelivery,
  attempts: readonly LoggedAttempt[],
  hostFailsSinceMs: number | undefined,
): DeliveryProgress {
  const nextAtMs = status === 'pending' ? attempts.at(-1)?.nextAtMs : undefined;
  return {
    deliveryId: data.deliveryId,
    status,
    // Null also while an attempt is under way.
    nextAttemptAt: nextAtMs === undefined || nextAtMs < redisNow() ? null : new Date(nextAtMs).toISOString(),
    attempts: attempts.map(({ nextAtMs: _, ...attempt }) => attempt),
    ...(hostFailsSinceMs !== undefined && {
      host: { state: 'failing', since: new Date(hostFailsSinceMs).toISOString() },
    }),
  };
}
