/** Instances, accounts of the gateway: creation, settings, answers (decisions B "Instances"). */
import { z } from 'zod';
import { Flag, Recipient } from './gateway.ts';

const transportKinds = ['loopback', 'xmpp', 'telegram', 'whatsapp-cloud', 'whatsapp'] as const;
export const TransportKind = z.enum(transportKinds).meta({ example: 'loopback' });
export type TransportKind = z.infer<typeof TransportKind>;

/** The state of an instance's connection to its network. */
export const ConnectionState = z.enum(['open', 'connecting', 'close']).meta({ example: 'open' });
export type ConnectionState = z.infer<typeof ConnectionState>;

export const InstanceId = z.uuid().meta({ example: '0c8f3f5e-1f5b-4b6e-9a43-6a1f4b0f7d11' });

const settingsFields = {
  rejectCall: z.boolean(),
  msgCall: z.string().max(4096),
  groupsIgnore: z.boolean(),
  alwaysOnline: z.boolean(),
  readMessages: z.boolean(),
  readStatus: z.boolean(),
  syncFullHistory: z.boolean(),
};

/** The seven behaviour settings (messaging-gateway.md "Instance settings"), as kept. */
export const InstanceSettings = z.object(settingsFields);
export type InstanceSettings = z.infer<typeof InstanceSettings>;

/** The same from a caller: an absent one keeps its value, or its default in a new instance. */
export const SetSettingsRequest = z.object({
  rejectCall: Flag.nullish().meta({ description: 'Rejects calls' }),
  msgCall: z
    .string()
    .max(4096)
    .nullish()
    .meta({ description: 'This text is sent to the caller of a rejected call' }),
  groupsIgnore: Flag.nullish().meta({ description: 'Neither stores nor announces group messages' }),
  alwaysOnline: Flag.nullish().meta({ description: 'Shows the account as online' }),
  readMessages: Flag.nullish().meta({ description: 'Marks incoming messages as read at once' }),
  readStatus: Flag.nullish().meta({
    description: 'Lets your messages reach the status READ and PLAYED. Default true.',
  }),
  syncFullHistory: Flag.nullish().meta({
    description: 'Fetches the history after connecting, after joining a group, and when you turn it on',
  }),
});
export type SetSettingsRequest = z.infer<typeof SetSettingsRequest>;

/** The settings after a change; absent or null ones stay unchanged. */
export function changedSettings(settings: InstanceSettings, change: SetSettingsRequest): InstanceSettings {
  const given = Object.entries(change).filter(
    ([name, value]) => name in settingsFields && value !== undefined && value !== null,
  );
  return InstanceSettings.parse({ ...settings, ...Object.fromEntries(given) });
}

export const defaultInstanceSettings: InstanceSettings = {
  rejectCall: false,
  msgCall: '',
  groupsIgnore: false,
  alwaysOnline: false,
  readMessages: false,
  // Without it reads are not reported: an extraction's messageStatus would stop at delivered.
  readStatus: true,
  syncFullHistory: false,
};

/** The six settings that an answer carries: all but msgCall, in snake_case. */
export const InstanceSettingsAnswer = z.object({
  reject_call: z.boolean().meta({ example: false }),
  groups_ignore: z.boolean().meta({ example: false }),
  always_online: z.boolean().meta({ example: false }),
  read_messages: z.boolean().meta({ example: false }),
  read_status: z.boolean().meta({ example: true }),
  sync_full_history: z.boolean().meta({ example: false }),
});
type InstanceSettingsAnswer = z.infer<typeof InstanceSettingsAnswer>;

export function settingsAnswer(settings: InstanceSettings): InstanceSettingsAnswer {
  return {
    reject_call: settings.rejectCall,
    groups_ignore: settings.groupsIgnore,
    always_online: settings.alwaysOnline,
    read_messages: settings.readMessages,
    read_status: settings.readStatus,
    sync_full_history: settings.syncFullHistory,
  };
}

const InstanceName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 characters of A-Z a-z 0-9 _ -')
  // A name that reads as an id could be mistaken for another instance.
  .refine((name) => !InstanceId.safeParse(name).success, 'must not have the form of an id')
  .meta({ description: '1 to 64 of the characters A-Z a-z 0-9 _ -, but not in the form of an id' });

export const NameAnswer = z.string().meta({ example: 'office' });

/** What an instance on XMPP needs. The password is stored encrypted and never answered. */
export const XmppConnection = z.object({
  jid: z
    .string()
    .regex(/^[^@\s/]+@[^@\s/]+(\/\S+)?$/, 'must be an address of the form name@domain')
    .max(3071)
    .meta({ description: 'Address of the account (RFC 7622)', example: 'soundpost@chat.example' }),
  password: z.string().min(1, 'must not be empty').max(1024),
  service: z
    .string()
    .regex(
      /^xmpps?:\/\/([^\s/@:]+|\[[\da-fA-F:.]+\])(:\d{1,5})?$/,
      'must be xmpp://host:port or, for TLS from the first byte, xmpps://host:port',
    )
    .max(2048)
    .nullish()
    .meta({
      description: 'Where the server is; default: what DNS says for the domain of the jid (RFC 6120)',
    }),
  uploadService: z.string().min(1).max(1023).nullish().meta({
    description: 'Address of the upload service (XEP-0363); default: found by discovery',
    example: 'upload.chat.example',
  }),
  mucService: z.string().min(1).max(1023).nullish().meta({
    description: 'Address of the group chats (XEP-0045); default: found by discovery',
    example: 'rooms.chat.example',
  }),
});
export type XmppConnection = z.infer<typeof XmppConnection>;

/** What an instance on Telegram needs (core.telegram.org/bots/api "Authorizing your bot"). */
export const TelegramConnection = z.object({
  botToken: z
    .string()
    .regex(/^\d{1,20}:[\w-]{20,128}$/, 'must be the token that @BotFather answered, digits:letters')
    .meta({ description: 'Token of the bot', example: '110201543:THE-TOKEN-OF-THE-BOT' }),
});
export type TelegramConnection = z.infer<typeof TelegramConnection>;

const GraphId = z.string().regex(/^\d{1,32}$/, 'must be an id of digits, as the app’s dashboard shows it');

/** What an instance on the WhatsApp Cloud API needs (docs/whatsapp-cloud.md). */
export const WhatsAppCloudConnection = z.object({
  phoneNumberId: GraphId.meta({
    description: 'Id of the number, not the number',
    example: '106540352242922',
  }),
  accessToken: z
    .string()
    .regex(/^[\x21-\x7e]{1,1024}$/, 'must be 1 to 1024 visible characters')
    .meta({ description: 'Permanent token of a system user', example: '<ACCESS_TOKEN>' }),
  appSecret: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible characters')
    .meta({ description: 'Verifies the signatures of webhooks', example: '<APP_SECRET>' }),
  verifyToken: z
    .string()
    .regex(/^[\x21-\x7e]{8,128}$/, 'must be 8 to 128 visible characters')
    .meta({
      description: 'Of your own choice; Meta repeats it to check the webhook',
      example: '<VERIFY_TOKEN>',
    }),
  businessAccountId: GraphId.nullish().meta({ description: 'Id of the WhatsApp Business account' }),
});
export type WhatsAppCloudConnection = z.infer<typeof WhatsAppCloudConnection>;

/** The networks whose instances need connection data, and what their messages call it. */
const connections = {
  xmpp: { schema: XmppConnection, fields: 'jid and password' },
  telegram: { schema: TelegramConnection, fields: 'botToken' },
  'whatsapp-cloud': {
    schema: WhatsAppCloudConnection,
    fields: 'phoneNumberId, accessToken, appSecret and verifyToken',
  },
} as const satisfies Partial<Record<TransportKind, { schema: z.ZodType; fields: string }>>;

/** Connection data of an account; stored encrypted, never returned. */
export type Connection = XmppConnection | TelegramConnection | WhatsAppCloudConnection;

/** The form of a network's connection data; undefined for a network without any. */
export function connectionSchema(kind: TransportKind): z.ZodType<Connection> | undefined {
  return kind in connections ? connections[kind as keyof typeof connections].schema : undefined;
}

/** The public server's name for the connection to WhatsApp that ours has too. */
const WHATSAPP_INTEGRATION = 'WHATSAPP-BAILEYS';

export const CreateInstanceRequest = SetSettingsRequest.extend({
  instanceName: InstanceName,
  transport: TransportKind.optional().meta({ default: 'loopback' }),
  integration: z
    .string()
    .max(64)
    .nullish()
    .meta({
      description: `As the public server has it: ${WHATSAPP_INTEGRATION} means the transport whatsapp, any other is refused; \`transport\` wins`,
    }),
  token: z
    .string()
    .regex(/^([\x21-\x7e]{16,128})?$/, 'must be 16 to 128 visible characters')
    .nullish()
    .meta({ description: 'Your own token. Generated if empty or omitted.' }),
  connection: z
    // The last takes any object, so that faults are named by the form of the instance's network.
    .union(
      [XmppConnection, TelegramConnection, WhatsAppCloudConnection, z.looseObject({})],
      'must be an object',
    )
    .nullish()
    .meta({ description: 'The account’s credentials, for xmpp, telegram and whatsapp-cloud' }),
}).transform(({ integration, connection, ...request }, context) => {
  const transport = request.transport ?? (integration ? 'whatsapp' : 'loopback');
  if (request.transport === undefined && integration && integration !== WHATSAPP_INTEGRATION) {
    const message = `must be ${WHATSAPP_INTEGRATION}, or left out for a transport of its own name`;
    context.addIssue({ code: 'custom', path: ['integration'], message });
  }
  const account = connectionOf(transport, connection, context);
  return { ...request, transport, ...(account && { connection: account }) };
});
export type CreateInstanceRequest = z.infer<typeof CreateInstanceRequest>;

/** The connection data in the form of this network; each fault becomes an issue. */
function connectionOf(
  kind: TransportKind,
  given: object | null | undefined,
  context: z.RefinementCtx,
): Connection | undefined {
  const schema = connectionSchema(kind);
  if (schema === undefined) return undefined;
  if (!given) {
    const { fields } = connections[kind as keyof typeof connections];
    context.addIssue({ code: 'custom', path: ['connection'], message: `must hold ${fields}` });
    return undefined;
  }
  const parsed = schema.safeParse(given);
  for (const { path, message } of parsed.error?.issues ?? []) {
    context.addIssue({ code: 'custom', path: ['connection', ...path], message });
  }
  return parsed.data;
}

/** GET /instance/fetchInstances: all, or the named one. */
export const FetchInstancesQuery = z.object({
  instanceName: z.string().max(64).optional(),
  instanceId: z.string().max(64).optional(),
});

export const InstanceAnswer = z.object({
  instanceName: NameAnswer,
  instanceId: InstanceId,
  transport: TransportKind,
  status: ConnectionState,
});
export type InstanceAnswer = z.infer<typeof InstanceAnswer>;

/** An instance as listed, also under the public server's names; tokens are never answered again. */
export const ListedInstance = InstanceAnswer.extend({
  id: InstanceId.meta({ description: 'The same as instanceId' }),
  name: NameAnswer.meta({ description: 'The same as instanceName' }),
  connectionStatus: ConnectionState.meta({ description: 'The same as status' }),
  ownerJid: z.string().nullable().meta({
    description: 'JID of its account; null while it is not known',
    example: '12025550100@people.loopback',
  }),
});

/** With GATEWAY_ANSWERS=public: its clients read `status` in another sense, without `open`. */
export const PublicListedInstance = ListedInstance.omit({ status: true });

export const CreateInstanceAnswer = z.object({
  instance: InstanceAnswer,
  /** The token of the instance, shown this once. */
  hash: z.string().meta({ example: '<TOKEN>' }),
  settings: InstanceSettingsAnswer,
});
export type CreateInstanceAnswer = z.infer<typeof CreateInstanceAnswer>;

export const ConnectionStateAnswer = z.object({
  instance: z.object({
    instanceName: NameAnswer,
    state: ConnectionState,
    reason: z.string().optional().meta({
      description: 'Why it is not open, where that is known',
      example: 'the server does not know the account, or its password is wrong',
    }),
  }),
});
export type ConnectionStateAnswer = z.infer<typeof ConnectionStateAnswer>;

/** GET /instance/connect. */
export const ConnectQuery = z.object({
  number: Recipient.nullish().meta({
    description: 'Number of the phone, to get a code to type on it (whatsapp)',
  }),
});

/** GET /instance/connect while there is something to pair; otherwise it answers the state. */
export const PairingAnswer = z.object({
  pairingCode: z.string().nullable().meta({ description: 'Type it on the phone' }),
  code: z.string().meta({ description: 'Content of the QR code' }),
  base64: z.string().meta({ description: 'The QR code as an image: data:image/png;base64,…' }),
  count: z.int().min(1),
});

export const SetSettingsAnswer = z.object({
  settings: z.object({ instanceName: NameAnswer, settings: InstanceSettingsAnswer }),
});

/** DELETE /instance/logout and /instance/delete. */
export const InstanceGoneAnswer = z.object({
  status: z.literal('SUCCESS'),
  error: z.literal(false),
  response: z.object({ message: z.string() }),
});
export type InstanceGoneAnswer = z.infer<typeof InstanceGoneAnswer>;
