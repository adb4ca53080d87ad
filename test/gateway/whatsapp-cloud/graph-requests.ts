/**
 * The requests of the Graph API that the gateway makes, each as strict as Meta's page about it says. script/compare-graph.ts
 * holds paths, methods and field names to Meta's published OpenAPI document.
 */
import { z } from 'zod';

const DOCS = 'https://developers.facebook.com/documentation/business-messaging/whatsapp';
const product = { messaging_product: z.literal('whatsapp') };
const messageId = z.string().startsWith('wamid.');

const toPerson = {
  recipient_type: z.literal('individual'),
  to: z.string().regex(/^\d{5,15}$/),
};
/** People whose number is hidden, by their business-scoped user id. */
const toHidden = {
  recipient_type: z.literal('individual'),
  recipient: z.string().regex(/^[A-Z]{2}\.\w+$/),
};
const toGroup = { recipient_type: z.literal('group'), to: z.string().min(20) };

const common = {
  ...product,
  context: z.strictObject({ message_id: messageId }).optional(),
  biz_opaque_callback_data: z.string().max(512).optional(),
};
const audio = {
  type: z.literal('audio'),
  audio: z.strictObject({ id: z.string().regex(/^\d+$/), voice: z.literal(true) }),
};
const text = {
  type: z.literal('text'),
  text: z.strictObject({ body: z.string().min(1).max(4096), preview_url: z.boolean().optional() }),
};
const sent = [toPerson, toHidden, toGroup].flatMap((to) => [
  z.strictObject({ ...common, ...to, ...audio }),
  z.strictObject({ ...common, ...to, ...text }),
]);
const read = z.strictObject({
  ...product,
  status: z.literal('read'),
  message_id: messageId,
  typing_indicator: z.strictObject({ type: z.literal('text') }).optional(),
});
const blocking = z.strictObject({
  ...product,
  block_users: z
    .array(z.strictObject({ user: z.string().regex(/^\+?\d{5,15}$/) }))
    .min(1)
    .max(1000),
});
const onlyProduct = z.strictObject(product);

export interface GraphOperation {
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As Meta's document writes it, below the version. */
  readonly path: string;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly isForm?: boolean;
  /** Meta's page. */
  readonly page: string;
}

export const graphOperations: readonly GraphOperation[] = [
  {
    name: 'number',
    method: 'GET',
    path: '/{Phone-Number-ID}',
    query: z.strictObject({ fields: z.literal('display_phone_number') }),
    page: `${DOCS}/business-phone-numbers/phone-numbers`,
  },
  {
    name: 'upload',
    method: 'POST',
    path: '/{Phone-Number-ID}/media',
    isForm: true,
    body: z.strictObject({
      ...product,
      type: z.literal('audio/ogg; codecs=opus'),
      file: z.instanceof(Uint8Array).refine((bytes) => bytes.length <= 16 * 1024 * 1024),
    }),
    page: `${DOCS}/business-phone-numbers/media`,
  },
  {
    name: 'message',
    method: 'POST',
    path: '/{Phone-Number-ID}/messages',
    // Voice messages: /messages/audio-messages; texts: /messages/text-messages; typing: /typing-indicators; groups:
    // /groups/groups-messaging. Meta's document of v23.0 lacks `voice`, which its page has.
    body: z.union([...sent, read]),
    page: `${DOCS}/messages/audio-messages`,
  },
  {
    name: 'block',
    method: 'POST',
    path: '/{Phone-Number-ID}/block_users',
    body: blocking,
    page: `${DOCS}/block-users`,
  },
  {
    name: 'unblock',
    method: 'DELETE',
    path: '/{Phone-Number-ID}/block_users',
    body: blocking,
    page: `${DOCS}/block-users`,
  },
  {
    name: 'invite',
    method: 'POST',
    path: '/{group_id}/invite_link',
    body: onlyProduct,
    page: `${DOCS}/groups/reference`,
  },
  {
    name: 'group',
    method: 'GET',
    path: '/{group_id}',
    query: z.strictObject({ fields: z.literal('subject,participants') }),
    page: `${DOCS}/groups/reference`,
  },
  {
    name: 'media',
    method: 'GET',
    path: '/{Media-ID}',
    query: z.strictObject({}),
    page: `${DOCS}/business-phone-numbers/media`,
  },
];
