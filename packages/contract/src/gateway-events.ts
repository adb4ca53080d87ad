/** Events of an instance, for GATEWAY_EVENTS_URL, webhooks and the voice inbox (decisions B). */
import { z } from 'zod';
import { MessageContent } from './gateway.ts';
import { ConnectionState } from './gateway-instances.ts';
import { MessageRecordAnswer } from './gateway-operations.ts';
import { MessageKey, MessageStatus } from './job.ts';

export const gatewayEventNames = [
  'messages.upsert',
  'messages.update',
  'connection.update',
  'call',
  'group-participants.update',
  'presence.update',
  'send.message',
  'qrcode.updated',
] as const;
const GatewayEventName = z.enum(gatewayEventNames);
export type GatewayEventName = z.infer<typeof GatewayEventName>;

/**
 * `data` of messages.upsert (a message was sent or has arrived) and of send.message (the gateway
 * sent it, asked by a caller or by a setting).
 */
const MessageUpsert = MessageRecordAnswer.extend({
  message: MessageContent.meta({
    description: 'With the plain file in `base64`, if the webhook asks for media',
  }),
});

/** `data` of messages.update: the status of a message moved forward, or its text was changed. */
const MessageUpdate = z.object({
  key: MessageKey,
  status: MessageStatus,
  message: MessageContent.optional().meta({ description: 'What it says now, after a change' }),
  error: z
    .object({ code: z.string(), message: z.string() })
    .optional()
    .meta({ description: 'Why it became ERROR, in the network’s code and our words' }),
});

/** `data` of connection.update. */
const ConnectionUpdate = z.object({
  instance: z.string(),
  state: z
    .enum([...ConnectionState.options, 'refused'])
    .meta({ description: 'refused: nobody paired it while its codes were valid' }),
  reason: z.string().optional(),
  statusReason: z.int().meta({
    description: '200 for open and connecting; else the code of the network, or 428: it was closed',
  }),
  wuid: z.string().optional().meta({ description: 'When it opens: JID of its account' }),
  profileName: z.string().nullable().optional(),
  profilePictureUrl: z.string().nullable().optional(),
});

/** `data` of qrcode.updated: a code to pair the instance with, or that there are no more. */
const QrcodeUpdate = z.union([
  z.object({
    qrcode: z.object({
      instance: z.string(),
      pairingCode: z.string().nullable().meta({ description: 'To be typed on the phone' }),
      code: z.string().meta({ description: 'What the picture holds' }),
      base64: z.string().meta({ description: 'The picture, as data:image/png;base64,…' }),
    }),
  }),
  z.object({ message: z.string(), statusCode: z.int() }),
]);

/** `data` of call. */
const CallUpdate = z.object({
  id: z.string(),
  from: z.string().meta({ description: 'JID of the caller' }),
  date: z.iso.datetime(),
  chatId: z.string().meta({ description: 'JID of the chat that it is in' }),
  isVideo: z.boolean(),
  isGroup: z.boolean(),
  offline: z.boolean().meta({ description: 'Whether it rang while the instance was not connected' }),
  status: z.enum(['offer', 'reject', 'timeout', 'terminate', 'accept']),
});

/** `data` of group-participants.update. */
const ParticipantsUpdate = z.object({
  id: z.string().meta({ description: 'JID of the group' }),
  author: z.string().nullable().meta({ description: 'JID of who did it' }),
  participants: z.array(z.string()),
  action: z.enum(['add', 'remove', 'promote', 'demote']),
  participantsData: z
    .array(
      z.object({
        jid: z.string(),
        phoneNumber: z.string(),
        name: z.string().nullable(),
        imgUrl: z.string().nullable(),
      }),
    )
    .meta({ description: 'The same people, as far as the address book knows them' }),
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
  'send.message': MessageUpsert,
  'qrcode.updated': QrcodeUpdate,
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

/** An event with the data that belongs to its name. */
export type NamedGatewayEvent = {
  [Name in GatewayEventName]: Omit<GatewayEvent, 'event' | 'data'> & {
    readonly event: Name;
    readonly data: GatewayEventData[Name];
  };
}[GatewayEventName];

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
