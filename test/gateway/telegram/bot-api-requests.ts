/**
 * What the Bot API takes, one schema a method, each from its section of core.telegram.org/bots/api. Strict: a field that
 * the page does not have, or that this project has no reason to send, is a fault of the test's run.
 */
import { z } from 'zod';

/** "Unique identifier for the target chat or username of the target channel (in the format @channelusername)". */
const chat_id = z.union([z.int(), z.string().regex(/^@\w{4,32}$/)]);
/** #messageentity: offset and length in UTF-16 code units; `user` for text_mention only. */
const entity = z.strictObject({
  type: z.literal('text_mention'),
  offset: z.int().min(0),
  length: z.int().min(1),
  user: z.looseObject({ id: z.int() }),
});
/** #replyparameters */
const reply_parameters = z.strictObject({
  message_id: z.int().min(1),
  allow_sending_without_reply: z.boolean().optional(),
});
/** #linkpreviewoptions */
const link_preview_options = z.strictObject({ is_disabled: z.boolean().optional() });
/** #update: the optional fields' names, as `allowed_updates` takes them. */
const allowed_updates = z.array(
  z.enum([
    'message',
    'edited_message',
    'channel_post',
    'edited_channel_post',
    'my_chat_member',
    'chat_member',
  ]),
);
const upload = z.strictObject({ bytes: z.instanceof(Buffer), name: z.string(), type: z.string() });

export const methods = {
  /** #getme "Requires no parameters." */
  getMe: z.strictObject({}),
  /** #getupdates: limit 1-100, timeout in seconds, offset of the first update to be returned */
  getUpdates: z.strictObject({
    offset: z.int().optional(),
    limit: z.int().min(1).max(100).optional(),
    timeout: z.int().min(0).optional(),
    allowed_updates: allowed_updates.optional(),
  }),
  /** #setwebhook: "HTTPS URL", secret_token 1-256 characters A-Z a-z 0-9 _ - */
  setWebhook: z.strictObject({
    url: z.url({ protocol: /^https$/ }),
    secret_token: z.string().regex(/^[\w-]{1,256}$/),
    max_connections: z.int().min(1).max(100).optional(),
    allowed_updates: allowed_updates.optional(),
  }),
  /** #deletewebhook */
  deleteWebhook: z.strictObject({ drop_pending_updates: z.boolean().optional() }),
  /** #getwebhookinfo */
  getWebhookInfo: z.strictObject({}),
  /** #sendmessage */
  sendMessage: z.strictObject({
    chat_id,
    text: z.string(),
    entities: z.array(entity).min(1).optional(),
    link_preview_options: link_preview_options.optional(),
    reply_parameters: reply_parameters.optional(),
  }),
  /** #sendvoice: an .OGG file with OPUS, posted using multipart/form-data; duration in seconds */
  sendVoice: z.strictObject({
    chat_id,
    voice: upload,
    caption: z.string().min(1).optional(),
    caption_entities: z.array(entity).min(1).optional(),
    duration: z.int().min(0).optional(),
    reply_parameters: reply_parameters.optional(),
  }),
  /** #sendchataction */
  sendChatAction: z.strictObject({ chat_id, action: z.enum(['typing', 'record_voice']) }),
  /** #editmessagetext */
  editMessageText: z.strictObject({
    chat_id,
    message_id: z.int().min(1),
    text: z.string().min(1),
    link_preview_options: link_preview_options.optional(),
  }),
  /** #editmessagecaption */
  editMessageCaption: z.strictObject({ chat_id, message_id: z.int().min(1), caption: z.string() }),
  /** #getfile */
  getFile: z.strictObject({ file_id: z.string().min(1) }),
  /** #getchat */
  getChat: z.strictObject({ chat_id }),
  /** #getchatadministrators */
  getChatAdministrators: z.strictObject({ chat_id }),
  /** #exportchatinvitelink */
  exportChatInviteLink: z.strictObject({ chat_id }),
} as const satisfies Record<string, z.ZodObject>;

export type Method = keyof typeof methods;
export type Request<Name extends Method> = z.output<(typeof methods)[Name]>;
