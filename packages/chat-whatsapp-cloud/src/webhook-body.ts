/**
 * What Meta posts (developers.facebook.com/docs/whatsapp/webhooks/reference). Each change and each
 * message is read by itself, so that one of a new form loses no others.
 */
import { fetchedAs, type IncomingVideo, incomingVideo } from 'soundpost-chat/transport';
import { z } from 'zod';

export const WebhookBody = z.object({
  entry: z.array(z.object({ changes: z.array(z.object({ field: z.string(), value: z.unknown() })) })),
});

const Metadata = z.object({ phone_number_id: z.string() });
export const ChangeTarget = z.object({ metadata: Metadata });

const Fault = z.object({
  code: z.number(),
  title: z.string().optional(),
  message: z.string().optional(),
  error_data: z.object({ details: z.string().optional() }).optional(),
});

/** …/webhooks/reference/messages/status */
export const Status = z.object({
  id: z.string().min(1).max(512),
  status: z.enum(['sent', 'delivered', 'read', 'played', 'failed']),
  /** Only in groups: whose status it is. */
  recipient_participant_id: z.string().optional(),
  biz_opaque_callback_data: z.string().max(512).optional(),
  errors: z.array(Fault).optional(),
});

const Media = z.object({
  id: z.string().regex(/^\d{1,64}$/),
  mime_type: z.string().optional(),
  caption: z.string().optional(),
});
const Reply = z.object({ title: z.string() });

/** …/webhooks/reference/messages */
export const Message = z.object({
  id: z.string().min(1).max(512),
  /** Absent for people whose number is hidden. */
  from: z
    .string()
    .regex(/^\d{5,20}$/)
    .optional(),
  from_user_id: z
    .string()
    .regex(/^[\w.-]{1,128}$/)
    .optional(),
  group_id: z
    .string()
    .regex(/^[\w=+-]{1,128}$/)
    .optional(),
  timestamp: z.coerce.number().int().positive(),
  type: z.string(),
  context: z.object({ id: z.string().optional() }).optional(),
  text: z.object({ body: z.string() }).optional(),
  audio: Media.optional(),
  voice: Media.optional(),
  image: Media.optional(),
  video: Media.optional(),
  document: Media.optional(),
  button: z.object({ text: z.string() }).optional(),
  interactive: z.object({ button_reply: Reply.optional(), list_reply: Reply.optional() }).optional(),
});
export type Message = z.infer<typeof Message>;

export const Messages = z.object({
  contacts: z
    .array(
      z.object({
        profile: z.object({ name: z.string().optional() }).optional(),
        wa_id: z.string().optional(),
        user_id: z.string().optional(),
      }),
    )
    .default([])
    .catch([]),
  messages: z.array(z.unknown()).default([]),
  statuses: z.array(z.unknown()).default([]),
});

const Member = z.object({ wa_id: z.string().optional() });

/** …/groups/webhooks */
export const GroupChange = z.object({
  groups: z.array(
    z.object({
      group_id: z.string().regex(/^[\w=+-]{1,128}$/),
      type: z.string(),
      subject: z.string().optional(),
      invite_link: z.string().startsWith('https://').optional(),
      added_participants: z.array(Member).default([]),
      removed_participants: z.array(Member).default([]),
    }),
  ),
});

/** Shown for content without text. */
const labels: Readonly<Record<string, string>> = {
  image: '[image]',
  video: '[video]',
  document: '[document]',
  sticker: '[sticker]',
  location: '[location]',
  contacts: '[contacts]',
  order: '[order]',
};

/** What is fetched: sound, videos, and documents that are either. */
export function mediaOf({
  audio,
  voice,
  video,
  document,
}: Message): { id: string; video?: IncomingVideo } | undefined {
  const kind = fetchedAs(document?.mime_type);
  const heard = audio ?? voice ?? (kind === 'audio' ? document : undefined);
  if (heard !== undefined) return { id: heard.id };
  const seen = video ?? (kind === 'video' ? document : undefined);
  return seen && { id: seen.id, video: incomingVideo(seen.mime_type, seen.caption) };
}

/**
 * What people read of a message whose media is not fetched; undefined for reactions and the like.
 */
export function textOf(message: Message): string | undefined {
  const { text, image, video, document, button, interactive, type } = message;
  const reply = interactive?.button_reply ?? interactive?.list_reply;
  const caption = image?.caption ?? video?.caption ?? document?.caption;
  return text?.body ?? caption ?? button?.text ?? reply?.title ?? labels[type];
}
