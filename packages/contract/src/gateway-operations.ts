/**
 * The ten operations besides sending audio (messaging-gateway.md "Endpoints"; decisions B). Objects
 * are not strict: unknown fields are ignored, because public clients send some.
 */
import { z } from 'zod';
import { Delay, DOCUMENTED_TYPE, MAX_TEXT_LENGTH, MessageContent, Recipient } from './gateway.ts';
import { MessageKey, MessageStatus } from './job.ts';

const MAX_INVITED = 256;

export const UpdateMessageRequest = z.object({
  number: Recipient.meta({ description: 'Number or JID of the chat', [DOCUMENTED_TYPE]: undefined }),
  text: z
    .string()
    .min(1, 'must not be empty')
    .max(MAX_TEXT_LENGTH)
    .meta({ description: 'New text, or the caption of a voice message' }),
  key: z
    .object({
      remoteJid: z.string().max(128).nullish(),
      fromMe: z.boolean().nullish(),
      id: z.string().min(1, 'must not be empty').max(128),
    })
    .meta({ description: 'Key of the message, from the response that sent it' }),
});

export const SendInviteRequest = z.object({
  groupJid: Recipient.meta({
    description: 'JID of the group',
    example: '120363000000000001@groups.loopback',
  }),
  description: z.string().max(4096).nullish().meta({ description: 'Text in front of the link' }),
  numbers: z
    .array(Recipient)
    .min(1, 'must name somebody')
    .max(MAX_INVITED)
    .meta({ description: `Numbers or JIDs to invite, at most ${MAX_INVITED}` }),
});

const InviteUrl = z.string().meta({ example: 'http://127.0.0.1:8081/i/AaucOUSgAAGx1nVq0x4Lr0pXbS8' });
export const SendInviteAnswer = z.object({ send: z.literal(true), inviteUrl: InviteUrl });

export const Presence = z.enum(['composing', 'recording', 'paused', 'available', 'unavailable']);

/** How long a presence lasts that came without a delay. */
const DEFAULT_PRESENCE_MS = 3000;

const presenceFields = {
  number: Recipient.nullish(),
  delay: Delay.nullish().meta({
    description: `How long it is shown before \`paused\` follows, ms; default ${DEFAULT_PRESENCE_MS}`,
  }),
  presence: Presence.nullish().meta({ description: 'Default `composing`' }),
};

/** The fields are at the top level or inside `options`; the top level wins. */
export const SendPresenceRequest = z
  .object({ ...presenceFields, options: z.object(presenceFields).nullish() })
  .transform(({ options, ...top }, context) => {
    const number = top.number ?? options?.number;
    if (number === undefined || number === null) {
      context.addIssue({ code: 'custom', path: ['number'], message: 'must be a phone number or a JID' });
      return z.NEVER;
    }
    return {
      number,
      delayMs: top.delay ?? options?.delay ?? DEFAULT_PRESENCE_MS,
      presence: top.presence ?? options?.presence ?? 'composing',
    };
  });

/** The public server's answers where the interface has no body (GATEWAY_ANSWERS=public). */
export const PublicPresenceAnswer = z.object({ presence: Presence });
export const PublicBlockAnswer = z.object({ block: z.literal('success') });
export const PublicEditAnswer = z.object({
  key: MessageKey,
  message: MessageContent,
  messageTimestamp: z.string().meta({ example: '1795000000' }),
  status: MessageStatus,
});

export const BlockStatusRequest = z.object({
  number: Recipient,
  status: z.enum(['block', 'unblock'], 'must be block or unblock'),
});

const Page = z.coerce.number().int().min(1).max(1_000_000);

/** Both lists: all, or what `where` names, or one page. */
const FindRequest = z.object({
  where: z
    .object({
      id: z.string().max(128).nullish().meta({ description: 'JID or number' }),
      remoteJid: z.string().max(128).nullish().meta({ description: 'The same as `id`' }),
    })
    .nullish(),
  page: Page.nullish().meta({ description: 'Number of the page, from 1' }),
  offset: Page.nullish().meta({ description: 'Size of a page; default 50 if you send `page`' }),
});
export const FindContactsRequest = FindRequest;
export const FindChatsRequest = FindRequest;

const Jid = z.string().meta({ example: '12025550101@people.loopback' });
const Name = z.string().meta({ example: 'Ada Lovelace' });
const No = z.boolean().meta({ example: false });

export const ContactRecord = z.object({
  id: Jid,
  remoteJid: Jid,
  pushName: Name,
  profilePicUrl: z.string().nullable().meta({ example: null }),
  isGroup: No,
  isSaved: z.boolean().meta({ description: 'Whether it stands in the address book', example: true }),
  blocked: No,
});
export type ContactRecord = z.infer<typeof ContactRecord>;

/** The quote and the mentions of a message, under the names that WhatsApp has for them. */
const ContextInfo = z.object({
  stanzaId: z.string().optional().meta({ description: 'Id of the quoted message' }),
  participant: z.string().optional().meta({ description: 'JID of its author, where that is known' }),
  quotedMessage: MessageContent.optional().meta({ description: 'What it says, where that is known' }),
  mentionedJid: z.array(z.string()),
  nonJidMentions: z.int().optional().meta({ description: '1 where everybody in the group is mentioned' }),
});

export const MessageRecordAnswer = z.object({
  key: MessageKey,
  pushName: z
    .string()
    .nullable()
    .meta({ description: 'Who wrote it; null for an own message', example: null }),
  message: MessageContent,
  contextInfo: ContextInfo.optional().meta({ description: 'Absent without a quote and mentions' }),
  messageType: z.string().meta({ description: 'Name of the field of `message`', example: 'audioMessage' }),
  messageTimestamp: z.string().meta({ example: '1795000000' }),
  status: MessageStatus,
});
export type MessageRecordAnswer = z.infer<typeof MessageRecordAnswer>;

export const ChatRecord = z.object({
  id: Jid,
  remoteJid: Jid,
  pushName: Name,
  isGroup: No,
  updatedAt: z.iso.datetime().nullable().meta({ description: 'Time of the last message' }),
  unreadCount: z.int().min(0).meta({ example: 0 }),
  lastMessage: MessageRecordAnswer.nullable(),
});
export type ChatRecord = z.infer<typeof ChatRecord>;

/** The query of requests about a group. */
export const GroupQuery = z.object({
  groupJid: z
    .string('must be the JID of a group')
    .trim()
    .min(1, 'must be the JID of a group')
    .max(128)
    .meta({ description: 'JID of the group' }),
});

export const InviteCodeAnswer = z.object({
  inviteUrl: InviteUrl,
  inviteCode: z.string().meta({ example: 'AaucOUSgAAGx1nVq0x4Lr0pXbS8' }),
});

const GroupJid = z.string().meta({ example: '120363000000000001@groups.loopback' });
export const AcceptInviteQuery = z.object({
  inviteCode: z.string('must be an invite code').trim().min(1, 'must be an invite code').max(128),
});
export const AcceptInviteAnswer = z.object({ accepted: z.literal(true), groupJid: GroupJid });
export const RevokeInviteAnswer = z.object({ revoked: z.literal(true), ...InviteCodeAnswer.shape });

export const ParticipantsAnswer = z.object({
  participants: z.array(
    z.object({
      id: Jid,
      admin: z.enum(['superadmin', 'admin']).nullable().meta({ example: 'admin' }),
      name: Name,
    }),
  ),
});

const audience = z.enum(['all', 'contacts', 'contact_blacklist', 'none']).meta({ example: 'contacts' });

/** Who may see or do what with the account. */
export const PrivacySettings = z.object({
  readreceipts: audience,
  profile: audience,
  status: audience,
  online: z.enum(['all', 'match_last_seen']).meta({ example: 'match_last_seen' }),
  last: audience,
  groupadd: audience,
});
export type PrivacySettings = z.infer<typeof PrivacySettings>;
