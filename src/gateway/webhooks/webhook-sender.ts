/**
 * Tells the webhooks of instances what happened, signed by Standard Webhooks 1.0.0 and retried like every other webhook of
 * the service (decisions D). An instance's events go one after the other; instances do not wait for each other.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { GatewayEventName } from '../../contract/gateway-events.ts';
import type { Logger } from '../../logger.ts';
import type { Observer, WebhookOutcome } from '../../metrics/observer.ts';
import { OutboundFailed, OutboundRefused } from '../../outbound/errors.ts';
import type { Outbound } from '../../outbound/outbound.ts';
import type { Redis } from '../../queue/redis.ts';
import { signWebhook } from '../../signing/standard-webhooks.ts';
import { EVENT_STREAM, parseEvent, type StreamEntry } from '../event-stream.ts';
import { type OnDuty, StreamConsumer } from '../stream-consumer.ts';
import { untilAborted } from '../until-aborted.ts';
import { Deliveries, type Delivery } from './deliveries.ts';
import type { Webhooks } from './webhooks.ts';

export interface WebhookSenderOptions {
  readonly redis: Redis;
  /** A connection of its own, since reading the stream blocks it. */
  readonly blockingRedis: Redis;
  /** Resolves when this process may send: one at a time, so that an instance's events come in their order. */
  readonly onDuty: OnDuty;
  readonly webhooks: Webhooks;
  readonly outbound: Outbound;
  /** When an event is told, seconds after it happened; the first one at once. */
  readonly scheduleSeconds: readonly number[];
  readonly logger: Logger;
  readonly observer?: Observer | undefined;
}

const TIMEOUT_MS = 15_000;
const LONGEST_RETRY_AFTER_SECONDS = 60 * 60;
/** Up to this part of a delay is added to it, so that a receiver that comes back is not met by everything at once. */
const JITTER = 0.1;
const GONE = 410;
const BATCH = 100;
const CLAIM_IDLE_MS = 10_000;
/** How late a delivery of another process, or a changed clock, is noticed. */
const LONGEST_SLEEP_MS = 5000;
const PAUSE_AFTER_FAILURE_MS = 500;

type Outcome = { readonly done: true } | { readonly done: false; readonly retryAfterSeconds: number };

export class WebhookSender {
  readonly #options: WebhookSenderOptions;
  readonly #deliveries: Deliveries;
  readonly #consumer: StreamConsumer;
  readonly #closing = new AbortController();
  #wake = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  /** Ids of events and instances that wait in a lane: their lease may run out meanwhile. */
  readonly #taken = new Set<string>();
  /** What each instance is being told. */
  readonly #lanes = new Map<string, Promise<void>>();

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
    this.#deliveries = new Deliveries(options.redis);
    this.#consumer = new StreamConsumer({
      redis: options.blockingRedis,
      stream: EVENT_STREAM,
      group: 'webhooks',
      from: '$',
      claimIdleMs: CLAIM_IDLE_MS,
      removeFinished: false,
      // What is due is found by the one that sends: it hears of what it took itself at once.
      onDuty: options.onDuty,
      handle: (entry) => this.#take(entry),
      logger: options.logger,
    });
  }

  async start(): Promise<void> {
    await this.#consumer.start();
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#consumer.close();
    await this.#running;
    await Promise.all(this.#lanes.values());
  }

  /** From the stream of all events to what is on its way: nothing is sent here, so nothing waits. */
  async #take(entry: StreamEntry): Promise<void> {
    const { instanceId, event, envelope } = parseEvent(entry);
    const webhook = await this.#options.webhooks.of(instanceId);
    if (webhook?.enabled && webhook.events.includes(event as GatewayEventName)) {
      const happenedAtMs = Number.parseInt(entry.id, 10);
      await this.#deliveries.add({ eventId: entry.id, instanceId, envelope, happenedAtMs, attempts: 0 });
      this.#wake.resolve();
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await this.#options.onDuty(signal);
        this.#wake = Promise.withResolvers();
        const { due, nextAtMs } = await untilAborted(this.#deliveries.lease(BATCH), signal);
        for (const delivery of due) {
          this.#queue(delivery);
        }
        if (due.length < BATCH) {
          const sleepMs = Math.min((nextAtMs ?? Number.POSITIVE_INFINITY) - Date.now(), LONGEST_SLEEP_MS);
          await Promise.race([this.#wake.promise, wait(Math.max(0, sleepMs), undefined, { signal })]);
        }
      } catch (error) {
        if (!signal.aborted) {
          this.#options.logger.warn({ err: error }, 'looking for due webhooks failed');
          await wait(PAUSE_AFTER_FAILURE_MS, undefined, { signal }).catch(() => undefined);
        }
      }
    }
  }

  #queue(delivery: Delivery): void {
    const { instanceId } = delivery;
    const id = `${instanceId} ${delivery.eventId}`;
    if (this.#taken.has(id)) {
      return;
    }
    this.#taken.add(id);
    const lane = (this.#lanes.get(instanceId) ?? Promise.resolve())
      .then(() => this.#deliver(delivery))
      .catch((error: unknown) => {
        // Its lease runs out, and it is due again.
        if (!this.#closing.signal.aborted) {
          this.#options.logger.warn({ err: error, instanceId }, 'a webhook was not delivered');
        }
      })
      .finally(() => {
        this.#taken.delete(id);
        if (this.#lanes.get(instanceId) === lane) {
          this.#lanes.delete(instanceId);
        }
      });
    this.#lanes.set(instanceId, lane);
  }

  async #deliver(delivery: Delivery): Promise<void> {
    const { webhooks, scheduleSeconds, logger } = this.#options;
    this.#closing.signal.throwIfAborted();
    const webhook = await webhooks.of(delivery.instanceId);
    if (!webhook?.enabled) {
      return this.#deliveries.finish(delivery);
    }
    const outcome = await this.#attempt(delivery, webhook);
    const nextSlot = scheduleSeconds[delivery.attempts + 1];
    if (outcome.done) {
      return this.#deliveries.finish(delivery);
    }
    if (nextSlot === undefined) {
      this.#options.observer?.webhookGivenUp('instance');
      logger.error({ instanceId: delivery.instanceId, event: delivery.eventId }, 'a webhook was given up');
      return this.#deliveries.finish(delivery);
    }
    const delayMs = Math.max(
      0,
      delivery.happenedAtMs + nextSlot * 1000 - Date.now(),
      Math.min(outcome.retryAfterSeconds, LONGEST_RETRY_AFTER_SECONDS) * 1000,
    );
    await this.#deliveries.postpone(
      delivery,
      Math.round(Date.now() + delayMs * (1 + Math.random() * JITTER)),
    );
  }

  async #attempt(
    { eventId, envelope, instanceId }: Delivery,
    webhook: { url: string; headers: Record<string, string>; secret: string },
  ): Promise<Outcome> {
    const { outbound, logger, observer } = this.#options;
    const startedAt = performance.now();
    const tell = (outcome: WebhookOutcome): void =>
      observer?.webhookTried('instance', outcome, (performance.now() - startedAt) / 1000);
    try {
      const { status, retryAfterSeconds } = await outbound.post({
        url: webhook.url,
        headers: {
          ...webhook.headers,
          'content-type': 'application/json',
          ...signWebhook(`evt_${eventId}`, envelope, [webhook.secret], Date.now()),
        },
        body: envelope,
        timeoutMs: TIMEOUT_MS,
        signal: this.#closing.signal,
      });
      const isTaken = status >= 200 && status < 300;
      tell(isTaken ? 'delivered' : status === GONE ? 'gone' : 'rejected');
      if (isTaken || status === GONE) {
        return { done: true };
      }
      logger.warn({ instanceId, status }, 'a webhook was refused');
      return { done: false, retryAfterSeconds: retryAfterSeconds ?? 0 };
    } catch (error) {
      if (error instanceof OutboundFailed || error instanceof OutboundRefused) {
        tell('unreachable');
        logger.warn({ instanceId, err: error }, 'a webhook could not be reached');
        return { done: false, retryAfterSeconds: 0 };
      }
      throw error;
    }
  }
}
