/** A webhook that was sent, or is being sent, as its owner is shown it: of a job and of an instance. */
import { z } from 'zod';

export const DeliveryAttempt = z.object({
  at: z.iso.datetime(),
  httpStatus: z.int().nullable(),
  latencyMs: z.int().min(0),
  error: z.string().nullable(),
});

/** Each adds which event it tells of. */
export const DeliveryProgress = z.object({
  deliveryId: z.string(),
  status: z.enum(['pending', 'delivered', 'failed']),
  nextAttemptAt: z.iso.datetime().nullable(),
  attempts: z.array(DeliveryAttempt),
});
export type DeliveryProgress = z.infer<typeof DeliveryProgress>;
