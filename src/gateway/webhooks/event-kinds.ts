/** The engine's kinds for instances' webhooks and the status relay (decisions C and D). */

import type { Logger } from 'soundpost-base/logger';
import type { LiveEvent } from 'soundpost-chat/event-stream';
import type { AudioMessage } from 'soundpost-contract/gateway';
import type { NamedGatewayEvent } from 'soundpost-contract/gateway-events';
import { MAX_EVENT_MEDIA_BYTES } from 'soundpost-contract/gateway-webhooks';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { z } from 'zod';
import { endpointOf } from '../../followups/endpoints.ts';
import { doubling, type FollowUpKind, scheduled } from '../../followups/kind.ts';
import {
  GONE,
  type Post,
  postToOperator,
  tryWebhook,
  WEBHOOK_PLACES,
  type Webhook,
} from '../../followups/post-webhook.ts';
import type { MediaStore } from '../media-store.ts';
import { OutgoingOrder } from '../outgoing.ts';
import { publicEvent } from './public-events.ts';
import { addressOf, type Webhooks } from './webhooks.ts';

/** The event in it; it is our own, and was checked when it was made. */
export const toldIn = (envelope: string): NamedGatewayEvent => JSON.parse(envelope);

/** A delivery of an event: the data of its job. */
export const EventDelivery = z.object({
  version: z.literal(1),
  /** The webhook-id: the same for every attempt and every replay. */
  deliveryId: z.string(),
  /** When the event happened, ms since the epoch. */
  eventTimeMs: z.number(),
  instanceId: z.string(),
  event: z.string(),
  /** The posted bytes. */
  envelope: z.string(),
});
export type EventDelivery = z.infer<typeof EventDelivery>;

/** The id is the event's position in the stream, so reading it twice adds one delivery. */
export function eventDelivery({ id, instanceId, event, envelope }: LiveEvent): EventDelivery {
  const eventTimeMs = Number.parseInt(id, 10);
  return { version: 1, deliveryId: `evt_${id}`, eventTimeMs, instanceId, event, envelope };
}

/** Statuses that a retry would not change. */
const REFUSED_FOR_GOOD = [400, GONE, 413, 415, 422];
/** A day's attempts: an older status helps nobody. */
export const RELAY_TRIES = 24 * 60;
const RELAY_SCHEDULE = { firstMs: 1000, longestMs: 60_000, tries: RELAY_TRIES };

const FINAL = new Set([GONE]);
const RELAY_FINAL = new Set(REFUSED_FOR_GOOD);
const PLACES = { name: 'gateway-webhook', ...WEBHOOK_PLACES } as const;

/** The body without its media, which are read only when it is posted. */
export type ReadyEvent = Webhook & { readonly audio?: AudioMessage | undefined };
type EventKind = FollowUpKind<EventDelivery, ReadyEvent, { readonly status: number }>;

interface InstanceKindOptions {
  readonly webhooks: Webhooks;
  readonly media: Pick<MediaStore, 'plain'>;
  /** Base URL of the gateway under GATEWAY_ANSWERS=public; undefined: events of our own form. */
  readonly publicUrl: string | undefined;
  /** Through the outbound guard. */
  readonly post: Post;
  /** Attempts, in seconds after the event. */
  readonly scheduleSeconds: readonly number[];
  readonly logSeconds: number;
  readonly logger: Logger;
  readonly observer?: Observer | undefined;
}

/** An instance's events are first attempted in order; a failed one comes later. */
export function instanceKind(options: InstanceKindOptions): EventKind {
  const { webhooks, media, publicUrl, post, scheduleSeconds, logSeconds, logger, observer } = options;
  /** 16 MiB are 60 MiB on their way, so an instance posts its media one after the other. */
  const order = new OutgoingOrder();
  return {
    payload: EventDelivery,
    async prepare({ deliveryId: id, instanceId, event, envelope }) {
      const webhook = await webhooks.of(instanceId);
      if (!webhook?.enabled) return { outcome: 'final', error: 'the webhook is switched off' };
      const { url: destination, headers, secret, base64 } = webhook;
      const told = toldIn(envelope);
      const receiver = publicUrl && { instanceId, destination, serverUrl: publicUrl };
      const body = receiver ? JSON.stringify(publicEvent(told, receiver)) : envelope;
      const url = addressOf(webhook, event);
      const audio = base64 ? audioIn(told) : undefined;
      return { ready: { id, url, headers, secrets: [secret], body, audio } };
    },
    async try({ audio, ...webhook }, { instanceId, event }, attempt, signal) {
      const trying = (body: string) =>
        tryWebhook({ ...webhook, body }, attempt, signal, {
          ...{ post, finalStatuses: FINAL, logger, about: { instanceId, event }, event },
          ...(observer && { observed: { as: 'instance', observer } }),
        });
      if (audio === undefined) return trying(webhook.body);
      const turn = order.join(instanceId);
      try {
        await turn.come(signal);
        const plain = await media.plain(audio, MAX_EVENT_MEDIA_BYTES);
        return await trying(plain === undefined ? webhook.body : bodyWith(webhook.body, plain));
      } finally {
        turn.leave();
      }
    },
    schedule: scheduled(scheduleSeconds),
    lane: (data) => ({ name: data.instanceId, order: orderOf(data), until: 'first try' }),
    async turn({ instanceId, event }) {
      const webhook = await webhooks.of(instanceId);
      return webhook && { key: instanceId, ...endpointOf(addressOf(webhook, event)), places: PLACES };
    },
    logSeconds,
  };
}

function audioIn({ event, data }: NamedGatewayEvent): AudioMessage | undefined {
  const hasMedia = event === 'messages.upsert' || event === 'send.message';
  return hasMedia && 'audioMessage' in data.message ? data.message.audioMessage : undefined;
}

/** `data.message.base64`, as the public server has it. */
function bodyWith(body: string, plain: Buffer): string {
  const told = JSON.parse(body);
  told.data.message.base64 = plain.toString('base64');
  return JSON.stringify(told);
}

export interface RelayTarget {
  /** The operator's, so it can be a private address. */
  readonly url: string;
  /** `whsec_<base64>`. */
  readonly secret: string;
}

/** Each status waits for the one before, so a message's statuses arrive in order. */
export function relayKind(target: RelayTarget | undefined, logger: Logger): EventKind {
  return {
    payload: EventDelivery,
    prepare: async ({ deliveryId: id, envelope: body }) =>
      target === undefined
        ? { outcome: 'final', error: 'there is no address for events' }
        : { ready: { id, url: target.url, secrets: [target.secret], body } },
    try: (webhook, { event }, attempt, signal) =>
      tryWebhook(webhook, attempt, signal, {
        ...{ post: postToOperator, finalStatuses: RELAY_FINAL, logger, about: { event }, event },
      }),
    schedule: doubling(RELAY_SCHEDULE),
    lane: (data) => ({ name: 'relay', order: orderOf(data), until: 'end' }),
  };
}

/** A stream position as sortable text: its two numbers, padded. */
function orderOf({ deliveryId }: EventDelivery): string {
  return (deliveryId.match(/\d+/g) ?? []).map((number) => number.padStart(20, '0')).join('-');
}
