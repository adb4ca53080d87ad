/** What the engine is told of the webhooks of instances and of the status relay (decisions C and D). */

import type { LiveEvent } from 'soundpost-chat/event-stream';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { z } from 'zod';
import { DeliveryData, type DeliveryKind } from '../../followups/delivery-kind.ts';
import { hostOf, type Post, postToOperator } from '../../followups/post-webhook.ts';
import { doubling, scheduled } from '../../followups/schedule.ts';
import type { Webhooks } from './webhooks.ts';

// An event on its way to somebody: the data of its job.

export const EventDelivery = DeliveryData.extend({
  version: z.literal(1),
  instanceId: z.string(),
  event: z.string(),
  /** What is posted, byte for byte. */
  envelope: z.string(),
});
type EventDelivery = z.infer<typeof EventDelivery>;

/** Its id is the event's place in the stream, so an event that is read twice is one delivery. */
export function eventDelivery({ id, instanceId, event, envelope }: LiveEvent): EventDelivery {
  const eventTimeMs = Number.parseInt(id, 10);
  return { version: 1, deliveryId: `evt_${id}`, eventTimeMs, instanceId, event, envelope };
}

const GONE = 410;
/** What the receiver of statuses cannot read, or does not want, it will not take the next time either. */
const REFUSED_FOR_GOOD = [400, GONE, 413, 415, 422];
/** Those of a day: a status that nobody took for so long helps nobody any more. */
export const RELAY_TRIES = 24 * 60;
const RELAY_SCHEDULE = { firstMs: 1000, longestMs: 60_000, tries: RELAY_TRIES };

interface InstanceKindOptions {
  readonly webhooks: Webhooks;
  /** Through the outbound guard. */
  readonly post: Post;
  /** When an event is told, seconds after it happened. */
  readonly scheduleSeconds: readonly number[];
  readonly logSeconds: number;
  readonly observer?: Observer | undefined;
}

/** First tries of an instance's events come in the order of the events; one that failed comes later. */
export function instanceKind(options: InstanceKindOptions): DeliveryKind {
  const { webhooks, post, scheduleSeconds, logSeconds, observer } = options;
  return {
    async prepare(data) {
      const { instanceId, envelope } = EventDelivery.parse(data);
      const webhook = await webhooks.of(instanceId);
      return webhook?.enabled
        ? { url: webhook.url, headers: webhook.headers, secrets: [webhook.secret], body: envelope }
        : 'the webhook is switched off';
    },
    post,
    schedule: scheduled(scheduleSeconds),
    finalStatuses: new Set([GONE]),
    laneOf: (data) => ({
      name: EventDelivery.parse(data).instanceId,
      order: orderOf(data),
      until: 'first try',
    }),
    async turnOf(data) {
      const { instanceId } = EventDelivery.parse(data);
      const webhook = await webhooks.of(instanceId);
      return webhook && { key: instanceId, host: hostOf(webhook.url) };
    },
    logSeconds,
    about: ({ instanceId, event }) => ({ instanceId, event }),
    ...(observer && { observed: { as: 'instance', observer } }),
  };
}

interface RelayTarget {
  /** Configured by the operator, so it may be a private address. */
  readonly url: string;
  /** `whsec_<base64>`. */
  readonly secret: string;
}

/** Each status waits until the one before was taken or given up, so a message's statuses come in their order. */
export function relayKind(target: RelayTarget | undefined): DeliveryKind {
  return {
    prepare: async (data) =>
      target === undefined
        ? 'there is no address for events'
        : { url: target.url, secrets: [target.secret], body: EventDelivery.parse(data).envelope },
    post: postToOperator,
    schedule: doubling(RELAY_SCHEDULE),
    finalStatuses: new Set(REFUSED_FOR_GOOD),
    laneOf: (data) => ({ name: 'relay', order: orderOf(data), until: 'end' }),
    about: ({ event }) => ({ event }),
  };
}

/** A position in the stream as a text that sorts: its two numbers, padded. */
function orderOf({ deliveryId }: DeliveryData): string {
  return (deliveryId.match(/\d+/g) ?? []).map((number) => number.padStart(20, '0')).join('-');
}
