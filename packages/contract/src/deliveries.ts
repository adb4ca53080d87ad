/** A delivery as its owner sees it: what follows a job, and an instance's webhooks. */
import { z } from 'zod';

export const DeliveryAttempt = z.object({
  at: z.iso.datetime(),
  httpStatus: z.int().nullable(),
  latencyMs: z.int().min(0),
  error: z.string().nullable(),
});

/** Each kind adds the event that it reports. */
export const DeliveryProgress = z.object({
  deliveryId: z.string(),
  status: z.enum(['pending', 'delivered', 'failed']),
  nextAttemptAt: z.iso.datetime().nullable(),
  attempts: z.array(DeliveryAttempt),
  endpoint: z
    .object({ state: z.literal('failing'), failedSince: z.iso.datetime() })
    .optional()
    .meta({
      description:
        'Only while the webhook’s endpoint (scheme, host, port and path) keeps failing. It gets one attempt at a time, so the next one may come after nextAttemptAt',
    }),
});
export type DeliveryProgress = z.infer<typeof DeliveryProgress>;
