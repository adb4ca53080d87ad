/**
 * Posts the status of messages to the operator's GATEWAY_EVENTS_URL, signed by Standard Webhooks 1.0.0, so that an
 * extraction job can follow its voice message (decisions C). Each again until the receiver takes it.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '../logger.ts';
import type { Redis } from '../queue/redis.ts';
import { signWebhook } from '../signing/standard-webhooks.ts';
import { EVENT_STREAM, parseEvent, type StreamEntry } from './event-stream.ts';
import { type OnDuty, StreamConsumer } from './stream-consumer.ts';

export interface EventsPostOptions {
  /** Configured by the operator, so it may be a private address. */
  readonly url: string;
  /** `whsec_<base64>`. */
  readonly secret: string;
  /** A connection of its own, since reading the stream blocks it. */
  readonly blockingRedis: Redis;
  /** Resolves when this process may post: one at a time, so that a message's statuses come in their order. */
  readonly onDuty: OnDuty;
  readonly logger: Logger;
}

const POSTED_EVENTS = new Set(['messages.update']);
/** A receiver that cannot read an event, or wants none, will not the next time either; the others must not wait for it. */
const REFUSED_FOR_GOOD = new Set([400, 410, 413, 415, 422]);
const TIMEOUT_MS = 15_000;
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 60_000;
/** A status that nobody took for a day helps nobody any more. */
const GIVE_UP_AFTER_MS = 24 * 60 * 60 * 1000;
const CLAIM_IDLE_MS = 10_000;

export class EventsPost {
  readonly #options: EventsPostOptions;
  readonly #consumer: StreamConsumer;

  constructor(options: EventsPostOptions) {
    this.#options = options;
    this.#consumer = new StreamConsumer({
      redis: options.blockingRedis,
      stream: EVENT_STREAM,
      group: 'events-url',
      from: '$',
      claimIdleMs: CLAIM_IDLE_MS,
      removeFinished: false,
      onDuty: options.onDuty,
      handle: (entry, signal) => this.#post(entry, signal),
      logger: options.logger,
    });
  }

  start(): Promise<void> {
    return this.#consumer.start();
  }

  close(): Promise<void> {
    return this.#consumer.close();
  }

  async #post(entry: StreamEntry, signal: AbortSignal): Promise<void> {
    const { event, envelope } = parseEvent(entry);
    if (!POSTED_EVENTS.has(event)) {
      return;
    }
    const happenedAt = Number.parseInt(entry.id, 10);
    let retryMs = FIRST_RETRY_MS;
    while (!(await this.#attempt(entry.id, envelope, signal))) {
      if (Date.now() - happenedAt > GIVE_UP_AFTER_MS) {
        this.#options.logger.error({ entry: entry.id }, 'an event was given up: its receiver never took it');
        return;
      }
      await wait(retryMs * (1 + Math.random() / 4), undefined, { signal });
      retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    }
  }

  /** Whether there is nothing more to do. */
  async #attempt(entryId: string, body: string, signal: AbortSignal): Promise<boolean> {
    try {
      const response = await fetch(this.#options.url, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          'Content-Type': 'application/json',
          ...signWebhook(`evt_${entryId}`, body, [this.#options.secret], Date.now()),
        },
        body,
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      await response.body?.cancel();
      if (!response.ok) {
        this.#options.logger.warn({ status: response.status }, 'the receiver of events refused one');
      }
      return response.ok || REFUSED_FOR_GOOD.has(response.status);
    } catch (error) {
      signal.throwIfAborted();
      this.#options.logger.warn({ err: error }, 'the receiver of events could not be reached');
    }
    return false;
  }
}
