/** Deliveries of events to instances' webhooks and GATEWAY_EVENTS_URL: added, shown, replayed. */

import type { Logger } from 'soundpost-base/logger';
import type { LiveEvent } from 'soundpost-chat/event-stream';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { GatewayEventName } from 'soundpost-contract/gateway-events';
import type { InstanceDelivery } from 'soundpost-contract/gateway-webhooks';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Probes } from 'soundpost-kit/observe/probes';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import type { Outbound } from 'soundpost-outbound/outbound';
import { WEBHOOKS_AT_A_TIME } from '../../followups/post-webhook.ts';
import { FollowUpQueue } from '../../followups/queue.ts';
import { FollowUpWorker } from '../../followups/worker.ts';
import type { MediaStore } from '../media-store.ts';
import {
  EventDelivery,
  eventDelivery,
  instanceKind,
  MEDIA_PLACES,
  RELAY_TRIES,
  type ReadyEvent,
  type RelayTarget,
  relayKind,
  toldIn,
} from './event-kinds.ts';
import { repeatsStatus } from './public-events.ts';
import { addressOf, type Webhooks } from './webhooks.ts';

interface EventDeliveriesOptions {
  /** Of the role `request`. */
  readonly redis: Redis;
  /** Of the role `worker`, for the engine. Closed with it. */
  readonly workerRedis: Redis;
  readonly webhooks: Webhooks;
  readonly media: Pick<MediaStore, 'plain'>;
  /** Base URL of the gateway under GATEWAY_ANSWERS=public; undefined: events of our own form. */
  readonly publicUrl: string | undefined;
  readonly outbound: Outbound;
  /** Attempts at an instance's webhook, seconds after the event. */
  readonly scheduleSeconds: readonly number[];
  /** Where messages.update is relayed; undefined relays nothing. */
  readonly relay: RelayTarget | undefined;
  readonly probes: Probes;
  readonly logger: Logger;
  readonly observer?: Observer | undefined;
}

const DAY_SECONDS = 24 * 60 * 60;
/** The schedule takes a day; then a delivery can be read and replayed for a week. */
const LOG_SECONDS = 8 * DAY_SECONDS;
/** Kept for all instances: about 2.5 KB each. */
const KEEP = {
  delivered: { age: DAY_SECONDS, count: 5000, limit: 100 },
  failed: { age: 7 * DAY_SECONDS, count: 5000, limit: 100 },
};
/** Deliveries shown for each instance. */
const SHOWN = 100;
const RELAYED_EVENT = 'messages.update';
/** After this and two checks, a dead gateway's attempt is repeated; a live one renews its lock. */
const LOCK_SECONDS = 10;

const shownKey = (instanceId: string): string => gatewayKey('deliveries', instanceId);

export class EventDeliveries {
  readonly #options: EventDeliveriesOptions;
  readonly #queue: FollowUpQueue;
  readonly #workerQueue: FollowUpQueue;
  #worker: FollowUpWorker<EventDelivery, ReadyEvent, { readonly status: number }> | undefined;

  constructor(options: EventDeliveriesOptions) {
    const { redis, workerRedis, logger } = options;
    this.#options = options;
    this.#queue = new FollowUpQueue({ name: 'gateway-webhook', redis, keep: KEEP, logger });
    // Waits while Redis is down, where a request would fail.
    this.#workerQueue = new FollowUpQueue({
      name: 'gateway-webhook',
      redis: workerRedis,
      keep: KEEP,
      logger,
    });
  }

  /** Starts delivering. Only one process at a time can, because lanes are local. */
  async start(): Promise<void> {
    const { scheduleSeconds, relay, workerRedis, probes, logger, observer } = this.#options;
    const { webhooks, media, publicUrl, outbound } = this.#options;
    const { post } = outbound;
    const kept = { scheduleSeconds, logSeconds: LOG_SECONDS };
    const instance = instanceKind({ webhooks, media, publicUrl, post, ...kept, logger, observer });
    const relayed = relayKind(relay, logger);
    this.#worker = await FollowUpWorker.start({
      queue: this.#workerQueue,
      redis: workerRedis,
      kindOf: (name) => (name === 'relay' ? relayed : instance),
      isAlone: true,
      // Lanes limit each instance, and the relay, to one first attempt at a time.
      concurrency: WEBHOOKS_AT_A_TIME,
      lockSeconds: LOCK_SECONDS,
      probes,
      observer,
      logger,
    });
  }

  /** Aborts running attempts: the next process repeats them at once. */
  async close(): Promise<void> {
    await this.#worker?.close(0);
    await Promise.all([this.#queue.close(), this.#workerQueue.close()]);
    await closeRedis(this.#options.workerRedis);
  }

  /** Adds deliveries for all subscribers. */
  async add(event: LiveEvent): Promise<void> {
    await this.#addToWebhook(event);
    await this.#addToRelay(event);
  }

  async #addToWebhook(event: LiveEvent): Promise<void> {
    const { redis, webhooks, publicUrl, scheduleSeconds } = this.#options;
    const webhook = await webhooks.of(event.instanceId);
    if (!webhook?.enabled || !webhook.events.includes(event.event as GatewayEventName)) {
      return;
    }
    if (publicUrl !== undefined && repeatsStatus(toldIn(event.envelope))) return;
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

  /** The instance's latest webhook deliveries, newest first. */
  async list(instanceId: string): Promise<InstanceDelivery[]> {
    const { redis, webhooks } = this.#options;
    const webhook = await webhooks.of(instanceId);
    const ids = await redis.zrange(shownKey(instanceId), '0', '-1', 'REV');
    const found = await Promise.all(
      ids.map(async (id) => {
        const delivery = await this.#queue.look(id);
        const event = eventOf(delivery?.stored.data);
        if (delivery === undefined || event === undefined) return undefined;
        const address = webhook && addressOf(webhook, event);
        const endpoint = address && (await this.#queue.failingEndpoint(instanceId, address));
        const withMedia =
          address && webhook.base64
            ? await this.#queue.failingEndpoint(instanceId, address, MEDIA_PLACES.name)
            : undefined;
        return { event, ...delivery.progress, ...withMedia, ...endpoint };
      }),
    );
    return found.filter((one) => one !== undefined);
  }

  /** False if the instance has no such delivery. */
  async replay(instanceId: string, deliveryId: string): Promise<boolean> {
    const isOwn = (await this.#options.redis.zscore(shownKey(instanceId), deliveryId)) !== null;
    return isOwn && (await this.#queue.replay(deliveryId));
  }

  /** A deleted instance's deliveries are dropped at their next attempt. */
  async forget({ id }: { readonly id: string }): Promise<void> {
    await this.#options.redis.del(shownKey(id));
  }
}

/** Undefined if this version cannot read it. */
const eventOf = (data: unknown): GatewayEventName | undefined =>
  EventDelivery.safeParse(data).data?.event as GatewayEventName | undefined;
