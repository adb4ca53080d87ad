/** An event on its way to somebody: the data of its job. */

import type { LiveEvent } from 'soundpost-chat/event-stream';
import { z } from 'zod';
import { DeliveryData } from '../../followups/delivery-kind.ts';

export const EventDelivery = DeliveryData.extend({
  version: z.literal(1),
  instanceId: z.string(),
  event: z.string(),
  /** What is posted, byte for byte. */
  envelope: z.string(),
});
type EventDelivery = z.infer<typeof EventDelivery>;

/** Its id is the event's place in the stream, so an event that is read twice is one delivery. */
export function eventDelivery({ id, instanceId, event, envelope }: LiveEvent): EventDelivery {
  const eventTimeMs = Number.parseInt(id, 10);
  return { version: 1, deliveryId: `evt_${id}`, eventTimeMs, instanceId, event, envelope };
}
