/** An event on its way to somebody: the data of its job. */

import type { LiveEvent } from 'soundpost-chat/event-stream';
import { z } from 'zod';

export const EventDelivery = z.object({
  version: z.literal(1),
  /** The webhook-id: the same for every try and every replay. */
  deliveryId: z.string(),
  /** When the event happened, ms since the epoch. */
  eventTimeMs: z.number(),
  instanceId: z.string(),
  event: z.string(),
  /** What is posted, byte for byte. */
  envelope: z.string(),
});
export type EventDelivery = z.infer<typeof EventDelivery>;

/** Its id is the event's place in the stream, so an event that is read twice is one delivery. */
export function eventDelivery({ id, instanceId, event, envelope }: LiveEvent): EventDelivery {
  const eventTimeMs = Number.parseInt(id, 10);
  return { version: 1, deliveryId: `evt_${id}`, eventTimeMs, instanceId, event, envelope };
}
