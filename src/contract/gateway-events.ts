/** What the gateway tells about an instance: to GATEWAY_EVENTS_URL, to webhooks and to the voice inbox (decisions B). */
import { z } from 'zod';
import { MessageKey, MessageStatus } from './job.ts';

const gatewayEventNames = [
  'messages.upsert',
  'messages.update',
  'presence.update',
  'connection.update',
] as const;
const GatewayEventName = z.enum(gatewayEventNames);

/** `data` of messages.update: the status of a message moved forward. */
const MessageUpdate = z.object({
  key: MessageKey,
  status: MessageStatus,
});

/** What every event has in common; `data` depends on `event`. */
export const GatewayEvent = z.object({
  event: GatewayEventName,
  /** Name of the instance. */
  instance: z.string(),
  data: z.unknown(),
  /** ISO 8601, UTC. */
  date_time: z.iso.datetime(),
  /** JID of the instance's own account. */
  sender: z.string(),
});
export type GatewayEvent = z.infer<typeof GatewayEvent>;

/** The event that an extraction job's `messageStatus` follows (decisions C). */
export const MessageUpdateEvent = GatewayEvent.extend({
  event: z.literal('messages.update'),
  data: MessageUpdate,
});
export type MessageUpdateEvent = z.infer<typeof MessageUpdateEvent>;
