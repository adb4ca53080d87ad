/** Events on their way to the webhooks of instances and to GATEWAY_EVENTS_URL: added, delivered, shown, replayed. */

import type { Logger } from 'soundpost-base/logger';
import type { LiveEvent } from 'soundpost-chat/event-stream';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { GatewayEventName } from 'soundpost-contract/gateway-events';
import type { InstanceDelivery } from 'soundpost-contract/gateway-webhooks';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import type { Outbound } from 'soundpost-outbound/outbound';
import { z } from 'zod';
import { readAttempts } from '../../followups/attempt-log.ts';
import { DeliveryData, type DeliveryKind } from '../../followups/delivery-kind.ts';
import { deliveryProgress } from '../../followups/delivery-progress.ts';
import { DeliveryQueue } from '../../followups/delivery-queue.ts';
import { DeliveryWorker } from '../../followups/delivery-worker.ts';
import { hostOf, type Post, postToOperator } from '../../followups/post-webhook.ts';
import { doubling, scheduled } from '../../followups/schedule.ts';
import type { Webhooks } from './webhooks.ts';

interface EventDeliveriesOptions {
  /** Of the role `request`. */
  readonly redis: Redis;
  /** Of the role `worker`, for the engine. Closed with it. */
  readonly workerRedis: Redis;
  readonly webhooks: Webhooks;
  readonly outbound: Outbound;
  /** When an instance's webhook is told of an event, seconds after it happened. */
  readonly scheduleSeconds: readonly number[];
  /** Where messages.update is relayed to; undefined relays nothing. */
  readonly relay: Parameters<typeof relayKind>[0];
  readonly logger: Logger;
  readonly observer?: Observer | undefined;
}

const DAY_SECONDS = 24 * 60 * 60;
/** The schedule takes a day, after which a delivery can be looked at and replayed for another week. */
const LOG_SECONDS = 8 * DAY_SECONDS;
/** What is kept of all instances: about 2.5 KB each. */
const KEEP = {
  delivered: { age: DAY_SECONDS, count: 5000, limit: 100 },
  failed: { age: 7 * DAY_SECONDS, count: 5000, limit: 100 },
};
/** Deliveries of an instance that are shown. */
const SHOWN = 100;
const RELAYED_EVENT = 'messages.update';
/** Lanes see to it that an instance, and the relay, take one each. */
const CONCURRENCY = 500;
/** A try takes 15 s at most and renews its lock; after this and two looks a dead gateway's try is made again. */
const LOCK_SECONDS = 10;

const shownKey = (instanceId: string): string => gatewayKey('deliveries', instanceId);

export class EventDeliveries {
  readonly #options: EventDeliveriesOptions;
  readonly #queue: DeliveryQueue;
  readonly #workerQueue: DeliveryQueue;
  #worker: DeliveryWorker | undefined;

  constructor(options: EventDeliveriesOptions) {
    const { redis, workerRedis, logger } = options;
    this.#options = options;
    this.#queue = new DeliveryQueue({ name: 'gateway-webhook', redis, keep: KEEP, logger });
    // Waits for a Redis that is away, where a request would fail.
    this.#workerQueue = new DeliveryQueue({
      name: 'gateway-webhook',
      redis: workerRedis,
      keep: KEEP,
      logger,
    });
  }

  /** Begins to deliver. One process at a time may, since lanes are its own. */
  async start(): Promise<void> {
    const { webhooks, outbound, scheduleSeconds, relay, workerRedis, logger, observer } = this.#options;
    const { post } = outbound;
    const instance = instanceKind({ webhooks, post, scheduleSeconds, logSeconds: LOG_SECONDS, observer });
    const relayed = relayKind(relay);
    this.#worker = await DeliveryWorker.start({
      queue: this.#workerQueue,
      redis: workerRedis,
      kindOf: (name) => (name === 'relay' ? relayed : instance),
      isAlone: true,
      concurrency: CONCURRENCY,
      lockSeconds: LOCK_SECONDS,
      logger,
    });
  }

  /** Breaks off what is under way: the next process makes it again at once. */
  async close(): Promise<void> {
    await this.#worker?.close(0);
    await Promise.all([this.#queue.close(), this.#workerQueue.close()]);
    await closeRedis(this.#options.workerRedis);
  }

  /** To everybody who wants it. */
  async add(event: LiveEvent): Promise<void> {
    await this.#addToWebhook(event);
    await this.#addToRelay(event);
  }

  async #addToWebhook(event: LiveEvent): Promise<void> {
    const { redis, webhooks, scheduleSeconds } = this.#options;
    const webhook = await webhooks.of(event.instanceId);
    if (!webhook?.enabled || !webhook.events.includes(event.event as GatewayEventName)) {
      return;
    }
    const data = eventDelivery(event);
    const { deliveryId, eventTimeMs } = data;
    const shown = shownKey(event.instanceId);
    await redis
      .multi()
      .zadd(shown, eventTimeMs, deliveryId)
      .zremrangebyrank(shown, 0, -SHOWN - 1)
      .expire(shown, LOG_SECONDS)
      .exec();
    await this.#queue.add(deliveryId, 'instance', data, scheduleSeconds.length);
  }

  async #addToRelay(event: LiveEvent): Promise<void> {
    if (this.#options.relay !== undefined && event.event === RELAYED_EVENT) {
      const data = eventDelivery(event);
      await this.#queue.add(`${data.deliveryId}-relay`, 'relay', data, RELAY_TRIES);
    }
  }

  /** The latest deliveries to the instance's webhook, newest first. */
  async list(instanceId: string): Promise<InstanceDelivery[]> {
    const { redis, webhooks } = this.#options;
    const webhook = await webhooks.of(instanceId);
    const hostFailsSinceMs = webhook && (await this.#queue.hostFailsSinceMs(webhook.url));
    const ids = await redis.zrange(shownKey(instanceId), '0', '-1', 'REV');
    const found = await Promise.all(
      ids.map(async (id) => {
        const [stored, attempts] = await Promise.all([this.#queue.find(id), readAttempts(redis, id)]);
        return (
          stored && { event: eventOf(stored.data), ...deliveryProgress(stored, attempts, hostFailsSinceMs) }
        );
      }),
    );
    return found.filter((one) => one !== undefined);
  }

  /** Answers false when the instance has no such delivery. */
  async replay(instanceId: string, deliveryId: string): Promise<boolean> {
    const isOwn = (await this.#options.redis.zscore(shownKey(instanceId), deliveryId)) !== null;
    return isOwn && (await this.#queue.replay(deliveryId));
  }

  /** What is on its way to a deleted instance is dropped at its next try. */
  async forget({ id }: { readonly id: string }): Promise<void> {
    await this.#options.redis.del(shownKey(id));
  }
}

const eventOf = (data: unknown): GatewayEventName => EventDelivery.parse(data).event as GatewayEventName;

// What the engine is told of the webhooks of instances and of the status relay (decisions C and D).

// An event on its way to somebody: the data of its job.

const EventDelivery = DeliveryData.extend({
  version: z.literal(1),
  instanceId: z.string(),
  event: z.string(),
  /** What is posted, byte for byte. */
  envelope: z.string(),
});
type EventDelivery = z.infer<typeof EventDelivery>;

/** Its id is the event's place in the stream, so an event that is read twice is one delivery. */
function eventDelivery({ id, instanceId, event, envelope }: LiveEvent): EventDelivery {
  const eventTimeMs = Number.parseInt(id, 10);
  return { version: 1, deliveryId: `evt_${id}`, eventTimeMs, instanceId, event, envelope };
}

const GONE = 410;
/** What the receiver of statuses cannot read, or does not want, it will not take the next time either. */
const REFUSED_FOR_GOOD = [400, GONE, 413, 415, 422];
/** Those of a day: a status that nobody took for so long helps nobody any more. */
const RELAY_TRIES = 24 * 60;
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
function instanceKind(options: InstanceKindOptions): DeliveryKind {
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
function relayKind(target: RelayTarget | undefined): DeliveryKind {
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
