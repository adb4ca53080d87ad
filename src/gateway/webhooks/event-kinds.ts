/** The engine's kinds for instances' webhooks and the status relay (decisions C and D). */

import { within } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { LiveEvent } from 'soundpost-chat/event-stream';
import type { AudioMessage, VideoMessage } from 'soundpost-contract/gateway';
import type { NamedGatewayEvent } from 'soundpost-contract/gateway-events';
import { MAX_EVENT_MEDIA_BYTES } from 'soundpost-contract/gateway-webhooks';
import { awayReason } from 'soundpost-kit/observe/away';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { z } from 'zod';
import { endpointOf } from '../../followups/endpoints.ts';
import { type Attempt, doubling, type FollowUpKind, scheduled } from '../../followups/kind.ts';
import {
  GONE,
  type Post,
  postToOperator,
  tryWebhook,
  WEBHOOK_PLACES,
  type Webhook,
} from '../../followups/post-webhook.ts';
import type { MediaStore } from '../media-store.ts';
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
/**
 * 16 MiB of media are 60 MiB on their way: four events with media at a time, of all instances, and
 * one of each. Others are parked, and hold nothing while they wait. Their one host is the bound.
 */
export const MEDIA_PLACES = {
  name: 'gateway-webhook-media',
  perKey: 1,
  perHost: 4,
  leaseMs: 30_000,
} as const;
const MEDIA_HOST = 'media';
/** With the post, less than the lease. */
const READ_MEDIA_WITHIN_MS = 10_000;
/** Shown in the log of deliveries. */
const WITHOUT_MEDIA = 'told without its media: the stored copy is damaged or cannot be read';

type Media = AudioMessage | VideoMessage;
/** The body without its media, which are read only when it is posted. */
export type ReadyEvent = Webhook & { readonly media?: Media | undefined };
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
  /** Undefined if they cannot be had: the event is told without them. */
  const mediaOf = async (sealed: Media, { number }: Attempt, signal: AbortSignal) => {
    const read = (limit: AbortSignal) => media.plain(sealed, MAX_EVENT_MEDIA_BYTES, limit);
    try {
      return { plain: await within(READ_MEDIA_WITHIN_MS, read, { signal }) };
    } catch (err) {
      signal.throwIfAborted();
      // While the storage is away this stays the first attempt.
      if (number === 1 && awayReason(err) !== undefined) throw err;
      logger.error({ err }, 'an event is sent without its media');
      return { plain: undefined, error: WITHOUT_MEDIA };
    }
  };
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
      const sealed = base64 ? mediaIn(told) : undefined;
      return { ready: { id, url, headers, secrets: [secret], body, media: sealed } };
    },
    async try({ media: sealed, ...webhook }, { instanceId, event }, attempt, signal) {
      const trying = (body: string) =>
        tryWebhook({ ...webhook, body }, attempt, signal, {
          ...{ post, finalStatuses: FINAL, logger, about: { instanceId, event }, event },
          ...(observer && { observed: { as: 'instance', observer } }),
        });
      if (sealed === undefined) return trying(webhook.body);
      const { plain, error } = await mediaOf(sealed, attempt, signal);
      const tried = await trying(plain === undefined ? webhook.body : bodyWith(webhook.body, plain));
      return tried.outcome === 'done' && error !== undefined ? { ...tried, error } : tried;
    },
    schedule: scheduled(scheduleSeconds),
    lane: (data) => ({ name: data.instanceId, order: orderOf(data), until: 'first try' }),
    async turn({ instanceId, event, envelope }) {
      const webhook = await webhooks.of(instanceId);
      if (webhook === undefined) return undefined;
      const turn = { key: instanceId, ...endpointOf(addressOf(webhook, event)), places: PLACES };
      const hasMedia = webhook.base64 && mediaIn(toldIn(envelope)) !== undefined;
      return hasMedia ? { ...turn, host: MEDIA_HOST, places: MEDIA_PLACES } : turn;
    },
    logSeconds,
  };
}

function mediaIn({ event, data }: NamedGatewayEvent): Media | undefined {
  if (event !== 'messages.upsert' && event !== 'send.message') return undefined;
  const { message } = data;
  if ('audioMessage' in message) return message.audioMessage;
  return 'videoMessage' in message ? message.videoMessage : undefined;
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
