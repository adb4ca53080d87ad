/**
 * The only reader of the event stream. It adds an event's deliveries, passes it to open pages, then
 * advances the cursor. After a crash it reads events again, which adds the same deliveries.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { untilAborted } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import {
  EVENT_STREAM,
  type LiveEvent,
  newestEventId,
  parseEntries,
  parseEvent,
  parseStreams,
} from 'soundpost-chat/event-stream';
import { type Lease, loadFencedScript } from 'soundpost-chat/lease/lease';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { isRedisAway } from 'soundpost-kit/observe/away';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readable } from 'soundpost-kit/redis/record';
import type { EventDeliveries } from './webhooks/event-deliveries.ts';

interface EventReaderOptions {
  readonly redis: Redis;
  /** Its own connection, because reading blocks. Closed with the reader. */
  readonly blockingRedis: Redis;
  readonly deliveries: EventDeliveries;
  readonly lease: Lease;
  readonly logger: Logger;
}

/** Id of the last event whose deliveries were added. */
const CURSOR = gatewayKey('event-cursor');
const BATCH = 100;
const BLOCK_MS = 5000;
const PAUSE_AFTER_FAILURE_MS = 500;
/** A page that missed more reloads everything. */
const LONGEST_REPLAY = 500;

const moveCursor = loadFencedScript(new URL('./lua/event-cursor-set.lua', import.meta.url));

export class EventReader {
  readonly #options: EventReaderOptions;
  readonly #listeners = new Set<(event: LiveEvent) => void>();
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  #last = '0-0';

  constructor(options: EventReaderOptions) {
    this.#options = options;
  }

  /** Resolves once no new event can be missed. */
  async start(): Promise<void> {
    const { redis } = this.#options;
    this.#last = (await redis.get(CURSOR)) ?? (await newestEventId(redis));
    await this.#keepPosition();
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    this.#options.blockingRedis.disconnect();
  }

  /** Calls the listener for each new event. Returns how to stop it. */
  listen(listener: (event: LiveEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Events after one that a page has seen. */
  async since(id: string): Promise<LiveEvent[]> {
    const { redis } = this.#options;
    const reply = await redis.xrange(EVENT_STREAM, `(${id}`, '+', 'COUNT', LONGEST_REPLAY);
    return readable(parseEntries(reply), parseEvent);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const entries = parseStreams(await untilAborted(this.#read(), signal));
        for (const entry of entries) {
          const [event] = readable([entry], parseEvent);
          if (event === undefined) {
            this.#options.logger.error({ event: entry.id }, 'an event that cannot be read was passed over');
          } else {
            await untilAborted(this.#deliver(event), signal);
            for (const listener of this.#listeners) listener(event);
          }
          this.#last = entry.id;
        }
        if (entries.length > 0) {
          await untilAborted(this.#keepPosition(), signal);
        }
      } catch (error) {
        if (!signal.aborted) {
          this.#options.logger.warn({ err: error }, 'reading events failed');
          await wait(PAUSE_AFTER_FAILURE_MS, undefined, { signal }).catch(() => undefined);
        }
      }
    }
  }

  /** An undeliverable event must not block later ones. */
  async #deliver(event: LiveEvent): Promise<void> {
    try {
      await this.#options.deliveries.add(event);
    } catch (error) {
      if (isRedisAway(error)) {
        throw error;
      }
      const { id, instanceId } = event;
      this.#options.logger.error({ err: error, event: id, instanceId }, 'an event was passed over');
    }
  }

  #read(): Promise<unknown> {
    const { blockingRedis } = this.#options;
    return blockingRedis.xread('COUNT', BATCH, 'BLOCK', BLOCK_MS, 'STREAMS', EVENT_STREAM, this.#last);
  }

  async #keepPosition(): Promise<void> {
    const { redis, lease } = this.#options;
    await moveCursor.run(redis, lease, [CURSOR], [this.#last]);
  }
}
