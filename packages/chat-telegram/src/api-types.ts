/**
 * What the Bot API answers and reports, as far as it is read: core.telegram.org/bots/api,
 * "Available types" and "Getting updates". Unknown fields are dropped, so that a newer server is no
 * fault.
 */
import { z } from 'zod';

/** https://core.telegram.org/bots/api#user */
export const User = z.object({
  id: z.int(),
  is_bot: z.boolean(),
  first_name: z.string(),
  last_name: z.string().optional(),
  username: z.string().optional(),
});
export type User = z.infer<typeof User>;

/** https://core.telegram.org/bots/api#chat; groups and channels have negative ids. */
export const Chat = z.object({
  id: z.int(),
  type: z.enum(['private', 'group', 'supergroup', 'channel']),
  title: z.string().optional(),
  username: z.string().optional(),
  first_name: z.string().optional(),
  last_name: z.string().optional(),
});
export type Chat = z.infer<typeof Chat>;

/** What voice, audio, video note, video and document have in common. */
const Media = z.object({
  file_id: z.string(),
  file_size: z.int().optional(),
  mime_type: z.string().optional(),
});

/** https://core.telegram.org/bots/api#messageentity */
const Entity = z.object({
  type: z.string(),
  offset: z.int(),
  length: z.int(),
  user: User.optional(),
});

const texts = {
  text: z.string().optional(),
  caption: z.string().optional(),
  entities: z.array(Entity).optional(),
  caption_entities: z.array(Entity).optional(),
};

/** https://core.telegram.org/bots/api#message */
export const Message = z.object({
  message_id: z.int(),
  date: z.int(),
  chat: Chat,
  from: User.optional(),
  /** A channel, or an anonymous administrator's group. */
  sender_chat: Chat.optional(),
  ...texts,
  voice: Media.optional(),
  audio: Media.optional(),
  video_note: Media.optional(),
  video: Media.optional(),
  document: Media.optional(),
  reply_to_message: z.object({ message_id: z.int(), chat: Chat, ...texts }).optional(),
  migrate_to_chat_id: z.int().optional(),
  migrate_from_chat_id: z.int().optional(),
  new_chat_title: z.string().optional(),
  new_chat_members: z.array(User).optional(),
  left_chat_member: User.optional(),
});
export type Message = z.infer<typeof Message>;

const Member = z.object({ status: z.string(), user: User, is_member: z.boolean().optional() });

/** https://core.telegram.org/bots/api#chatmemberupdated */
const MemberUpdate = z.object({
  chat: Chat,
  from: User,
  old_chat_member: Member,
  new_chat_member: Member,
});
export type MemberUpdate = z.infer<typeof MemberUpdate>;

/** https://core.telegram.org/bots/api#update; an update of another kind has only its id here. */
export const Update = z.object({
  update_id: z.int(),
  message: Message.optional(),
  edited_message: Message.optional(),
  channel_post: Message.optional(),
  edited_channel_post: Message.optional(),
  my_chat_member: MemberUpdate.optional(),
  chat_member: MemberUpdate.optional(),
});
export type Update = z.infer<typeof Update>;

/** The kinds that are asked for: `allowed_updates` of getUpdates and setWebhook. */
export const updateKinds: readonly string[] = Object.keys(Update.shape).filter(
  (kind) => kind !== 'update_id',
);

/** https://core.telegram.org/bots/api#getchatadministrators */
export const Administrators = z.array(Member);

/** https://core.telegram.org/bots/api#file; a local server answers an absolute `file_path`. */
export const File = z.object({ file_path: z.string().optional() });

/** https://core.telegram.org/bots/api#webhookinfo */
export const WebhookInfo = z.object({ url: z.string() });

/** https://core.telegram.org/bots/api#making-requests and #responseparameters */
export const Envelope = z.union([
  z.object({ ok: z.literal(true), result: z.unknown() }),
  z.object({
    ok: z.literal(false),
    error_code: z.int(),
    description: z.string().default(''),
    parameters: z
      .object({ retry_after: z.int().optional(), migrate_to_chat_id: z.int().optional() })
      .optional(),
  }),
]);

export function personName({ first_name, last_name }: Pick<User, 'first_name' | 'last_name'>): string {
  return [first_name, last_name].filter((part) => part).join(' ');
}

export function chatName({ id, title, first_name = '', last_name, username }: Chat): string {
  return title || personName({ first_name, last_name }) || username || String(id);
}
