/** Events of an instance, for GATEWAY_EVENTS_URL, webhooks and the voice inbox (decisions B). */
import { z } from 'zod';
import { MessageContent } from './gateway.ts';
import { ConnectionState } from './gateway-instances.ts';
import { MessageKey, MessageStatus } from './job.ts';

export const gatewayEventNames = [
  'messages.upsert',
  'messages.update',
  'connection.update',
  'call',
  'group-participants.update',
  'presence.update',
] as const;
const GatewayEventName = z.enum(gatewayEventNames);
export type GatewayEventName = z.infer<typeof GatewayEventName>;

/** `data` of messages.upsert: a message was sent or has arrived. */
const MessageUpsert = z.object({
  key: MessageKey,
  pushName: z.string().nullable(),
  message: MessageContent,
  messageTimestamp: z.string(),
  status: MessageStatus,
});

/** `data` of messages.update: the status of a message moved forward, or its text was changed. */
const MessageUpdate = z.object({
  key: MessageKey,
  status: MessageStatus,
  message: MessageContent.optional().meta({ description: 'What it says now, after a change' }),
});

/** `data` of connection.update. */
const ConnectionUpdate = z.object({
  instance: z.string(),
  state: ConnectionState,
  reason: z.string().optional(),
});

/** `data` of call. */
const CallUpdate = z.object({
  id: z.string(),
  from: z.string().meta({ description: 'JID of the caller' }),
  date: z.iso.datetime(),
  isVideo: z.boolean(),
  status: z.enum(['offer', 'reject', 'timeout', 'terminate', 'accept']),
});

/** `data` of group-participants.update. */
const ParticipantsUpdate = z.object({
  id: z.string().meta({ description: 'JID of the group' }),
  author: z.string().nullable().meta({ description: 'JID of who did it' }),
  participants: z.array(z.string()),
  action: z.enum(['add', 'remove', 'promote', 'demote']),
});

/** `data` of presence.update. */
const PresenceUpdate = z.object({
  id: z.string().meta({ description: 'JID of the chat' }),
  presences: z.record(z.string(), z.object({ lastKnownPresence: z.string() })),
});

export const gatewayEventData = {
  'messages.upsert': MessageUpsert,
  'messages.update': MessageUpdate,
  'connection.update': ConnectionUpdate,
  call: CallUpdate,
  'group-participants.update': ParticipantsUpdate,
  'presence.update': PresenceUpdate,
} as const satisfies Record<GatewayEventName, z.ZodType>;

export type GatewayEventData = {
  readonly [Name in GatewayEventName]: z.input<(typeof gatewayEventData)[Name]>;
};

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

/** Why a network did not deliver a message; long words are cut. */
const NetworkError = z
  .object({
    code: z.union([z.string().max(64), z.number()]).transform(String),
    message: z
      .string()
      .min(1)
      .transform((words) => words.slice(0, 500)),
  })
  .optional()
  .catch(undefined);
const KeyedUpdate = z
  .object({ key: z.object({ id: z.string().min(1).max(128) }), status: MessageStatus, error: NetworkError })
  .transform(({ key: { id }, status, error }) => ({ id, status, error }));
/** As the public server writes it. */
const PlainUpdate = z
  .object({ keyId: z.string().min(1).max(128), status: MessageStatus, error: NetworkError })
  .transform(({ keyId: id, status, error }) => ({ id, status, error }));
/** Any other status, such as `DELETED`, is dropped. */
const StatusUpdate = z.union([KeyedUpdate, PlainUpdate]).nullable().catch(null);

/** The event that a job's `messageStatus` follows, of our gateway and of others (decisions C). */
export const StatusReport = z.object({
  event: z.enum(['messages.update', 'MESSAGES_UPDATE']),
  data: z.union([z.array(StatusUpdate).max(1000), StatusUpdate.transform((update) => [update])]),
});
