/** Where an instance's events go (decisions B "Instances"): `POST /webhook/set/{instance}`. */
import { z } from 'zod';
import { DeliveryProgress } from './deliveries.ts';
import { DOCUMENTED_TYPE, Flag, Recipient } from './gateway.ts';
import { type GatewayEventName, gatewayEventNames } from './gateway-events.ts';
import {
  CreateInstanceAnswer,
  CreateInstanceRequest,
  NameAnswer,
  PairingAnswer,
} from './gateway-instances.ts';
import { CONNECTION_HEADERS, headerFields } from './request-headers.ts';

const Headers = headerFields({
  reserved: new RegExp(`^(${CONNECTION_HEADERS}|content-type|webhook-.*)$`),
  setBy: 'the gateway',
  longestValue: 4096,
});

/** `MESSAGES_UPSERT` as well as `messages.upsert`; undefined for any other event. */
function eventNamed(text: string): GatewayEventName | undefined {
  const plain = text.toLowerCase().replaceAll(/[._-]/g, '');
  return gatewayEventNames.find((name) => name.replaceAll(/[.-]/g, '') === plain);
}

/**
 * Without names: presences are frequent, a message that was sent is in messages.upsert already,
 * and whoever has a pairing code can take the account over. The public server sends all.
 */
const onlyNamed: readonly GatewayEventName[] = ['presence.update', 'send.message', 'qrcode.updated'];

/** @param asPublic whether GATEWAY_ANSWERS is public */
export function eventsWanted(
  named: readonly GatewayEventName[] | undefined,
  asPublic: boolean,
): GatewayEventName[] {
  return [...(named ?? gatewayEventNames.filter((name) => asPublic || !onlyNamed.includes(name)))];
}

/** Larger media stay out of an event; the receiver can fetch them by their url. */
export const MAX_EVENT_MEDIA_BYTES = 16 * 1024 * 1024;

const Webhook = z.object({
  enabled: z.boolean().nullish().meta({ description: 'Whether events are sent; default true' }),
  url: z.string().min(1, 'must not be empty').max(2048).meta({
    description: 'https URL of a public address',
    example: 'https://example.com/hooks/messages',
  }),
  headers: Headers.nullish().meta({ description: 'Sent with every event' }),
  byEvents: Flag.nullish().meta({
    description: 'Appends the event’s name to the path of the URL: /messages-upsert',
  }),
  base64: Flag.nullish().meta({
    description: `Adds decrypted media of up to ${MAX_EVENT_MEDIA_BYTES / 1024 / 1024} MiB as data.message.base64, unless they have expired. At most four such events are sent at a time.`,
  }),
  webhookByEvents: Flag.nullish().meta({ description: 'The same as byEvents' }),
  webhookBase64: Flag.nullish().meta({ description: 'The same as base64' }),
  events: z
    .array(z.string().max(64))
    .max(64)
    .nullish()
    .transform((names) =>
      names === null || names === undefined || names.length === 0
        ? undefined
        : [...new Set(names.map(eventNamed).filter((name) => name !== undefined))],
    )
    .meta({
      description:
        'Written as messages.upsert or MESSAGES_UPSERT. By default all but presence.update, send.message and qrcode.updated; with GATEWAY_ANSWERS=public, all. Unknown names are dropped.',
    }),
});

export const SetWebhookRequest = z.object({ webhook: Webhook });

export const WebhookAnswer = z.object({
  webhook: z.object({
    instanceName: NameAnswer,
    enabled: z.boolean().meta({ example: true }),
    url: z.string().meta({ example: 'https://example.com/hooks/messages' }),
    headers: z.record(z.string(), z.string()).meta({ example: { 'X-Office': 'Paris' } }),
    byEvents: z.boolean().meta({ example: false }),
    base64: z.boolean().meta({ example: false }),
    events: z.array(z.enum(gatewayEventNames)).meta({ example: ['messages.upsert', 'messages.update'] }),
    secret: z.string().meta({
      description: 'whsec_… of Standard Webhooks 1.0.0; every event is signed with it',
      example: 'whsec_<SECRET>',
    }),
  }),
});
export type WebhookAnswer = z.infer<typeof WebhookAnswer>;

/** GET /webhook/deliveries/{instance}. */
const InstanceDelivery = z.object({
  event: z.enum(gatewayEventNames),
  ...DeliveryProgress.shape,
});
export type InstanceDelivery = z.infer<typeof InstanceDelivery>;

export const InstanceDeliveries = z.object({
  deliveries: z
    .array(InstanceDelivery)
    .meta({ description: 'Newest first, 100 at most; deliveryId is the webhook-id' }),
});

/** POST /webhook/replay/{instance}. */
export const ReplayRequest = z.object({
  deliveryId: z.string().max(64).meta({ description: 'The webhook-id', example: 'evt_1795282462044-0' }),
});

/** POST /instance/create: an instance may have its webhook from the beginning. */
export const MakeInstanceRequest = CreateInstanceRequest.and(
  z.object({
    // Public clients send an empty address for none. The faults of a union would name no field.
    webhook: z.preprocess(
      (webhook) => (z.object({ url: z.literal('') }).safeParse(webhook).success ? undefined : webhook),
      Webhook.nullish(),
    ),
    qrcode: Flag.nullish().meta({
      description: 'Also connects the instance and returns the pairing code, if its network pairs',
    }),
    // Public clients send an empty one.
    number: z
      .preprocess((number) => (number === '' ? undefined : number), Recipient.nullish())
      .meta({
        [DOCUMENTED_TYPE]: 'string',
        description: 'With `qrcode`: number of the phone, to get a code to type on it',
      }),
  }),
);

export const MakeInstanceAnswer = CreateInstanceAnswer.extend({
  webhook: WebhookAnswer.shape.webhook.optional(),
  qrcode: PairingAnswer.optional(),
});
