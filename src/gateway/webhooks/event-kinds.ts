/**
 * What the engine is told of the webhooks of instances and of the status relay (decisions C and D).
 */

import type { Logger } from 'soundpost-base/logger';
import type { LiveEvent } from 'soundpost-chat/event-stream';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { z } from 'zod';
import { doubling, type FollowUpKind, scheduled } from '../../followups/kind.ts';
import {
  GONE,
  hostOf,
  type Post,
  postToOperator,
  tryWebhook,
  WEBHOOK_PLACES,
  type Webhook,
} from '../../followups/post-webhook.ts';
import type { Webhooks } from './webhooks.ts';

/** An event on its way to somebody: the data of its job. */
export const EventDelivery = z.object({
  version: z.literal(1),
  /** The webhook-id: the same for every try and every replay. */
  deliveryId: z.string(),
  /** When the event happened, ms since the epoch. */
  eventTimeMs: z.number(),
  instanceId: z.string(),
  event: z.string(),
  /** What is posted, byte for byte. */
  envelope: z.string(),
});
export type EventDelivery = z.infer<typeof EventDelivery>;

/** Its id is the event's place in the stream, so an event that is read twice is one delivery. */
export function eventDelivery({ id, instanceId, event, envelope }: LiveEvent): EventDelivery {
  const eventTimeMs = Number.parseInt(id, 10);
  return { version: 1, deliveryId: `evt_${id}`, eventTimeMs, instanceId, event, envelope };
}

/** What the receiver of statuses does not want, it will not take the next time either. */
const REFUSED_FOR_GOOD = [400, GONE, 413, 415, 422];
/** Those of a day: a status that nobody took for so long helps nobody any more. */
export const RELAY_TRIES = 24 * 60;
const RELAY_SCHEDULE = { firstMs: 1000, longestMs: 60_000, tries: RELAY_TRIES };

const FINAL = new Set([GONE]);
const RELAY_FINAL = new Set(REFUSED_FOR_GOOD);
const PLACES = { name: 'gateway-webhook', ...WEBHOOK_PLACES } as const;

type EventKind = FollowUpKind<EventDelivery, Webhook, { readonly status: number }>;

interface InstanceKindOptions {
  readonly webhooks: Webhooks;
  /** Through the outbound guard. */
  readonly post: Post;
  /** When an event is told, seconds after it happened. */
  readonly scheduleSeconds: readonly number[];
  readonly logSeconds: number;
  readonly logger: Logger;
  readonly observer?: Observer | undefined;
}

/**
 * First tries of an instance's events come in the order of the events; one that failed comes later.
 */
export function instanceKind(options: InstanceKindOptions): EventKind {
  const { webhooks, post, scheduleSeconds, logSeconds, logger, observer } = options;
  return {
    payload: EventDelivery,
    async prepare({ deliveryId: id, instanceId, envelope: body }) {
      const webhook = await webhooks.of(instanceId);
      if (!webhook?.enabled) return { outcome: 'final', error: 'the webhook is switched off' };
      const { url, headers, secret } = webhook;
      return { ready: { id, url, headers, secrets: [secret], body } };
    },
    try: (webhook, { instanceId, event }, attempt, signal) =>
      tryWebhook(webhook, attempt, signal, {
        ...{ post, finalStatuses: FINAL, logger, about: { instanceId, event }, event },
        ...(observer && { observed: { as: 'instance', observer } }),
      }),
    schedule: scheduled(scheduleSeconds),
    lane: (data) => ({ name: data.instanceId, order: orderOf(data), until: 'first try' }),
    async turn({ instanceId }) {
      const webhook = await webhooks.of(instanceId);
      return webhook && { key: instanceId, host: hostOf(webhook.url), places: PLACES };
    },
    logSeconds,
  };
}

export interface RelayTarget {
  /** Configured by the operator, so it may be a private address. */
  readonly url: string;
  /** `whsec_<base64>`. */
  readonly secret: string;
}

/** Each status waits for the one before to end, so a message's statuses come in their order. */
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

/** A position in the stream as a text that sorts: its two numbers, padded. */
function orderOf({ deliveryId }: EventDelivery): string {
  return (deliveryId.match(/\d+/g) ?? []).map((number) => number.padStart(20, '0')).join('-');
}
