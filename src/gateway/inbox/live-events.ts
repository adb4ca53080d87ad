/** The stream of events as it grows, for the pages that are open. One reader a process, whatever the number of pages. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '../../logger.ts';
import type { Redis } from '../../queue/redis.ts';
import { EVENT_STREAM, parseEntries, parseEvent, parseStreams, type StoredEvent } from '../event-stream.ts';
import { untilAborted } from '../until-aborted.ts';

export interface LiveEvent extends StoredEvent {
  /** Position in the stream, for Last-Event-ID. */
  readonly id: string;
}

const BLOCK_MS = 5000;
const PAUSE_AFTER_FAILURE_MS = 500;
/** A page that missed more reads everything anew. */
const LONGEST_REPLAY = 500;

export class LiveEvents {
  readonly #redis: Redis;
  readonly #blockingRedis: Redis;
  readonly #logger: Logger;
  readonly #listeners = new Set<(event: LiveEvent) => void>();
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  #last = '0-0';

  constructor(redis: Redis, blockingRedis: Redis, logger: Logger) {
    this.#redis = redis;
    this.#blockingRedis = blockingRedis;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    const [newest] = parseEntries(await this.#redis.xrevrange(EVENT_STREAM, '+', '-', 'COUNT', 1));
    this.#last = newest?.id ?? '0-0';
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    this.#blockingRedis.disconnect();
  }

  /** Calls the listener for every event from now on. Answers how to stop it. */
  listen(listener: (event: LiveEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What came after an event that a page has seen. */
  async since(id: string): Promise<LiveEvent[]> {
    const entries = parseEntries(
      await this.#redis.xrange(EVENT_STREAM, `(${id}`, '+', 'COUNT', LONGEST_REPLAY),
    );
    return entries.map((entry) => ({ id: entry.id, ...parseEvent(entry) }));
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        for (const entry of parseStreams(await untilAborted(this.#read(), signal))) {
          this.#last = entry.id;
          const event = { id: entry.id, ...parseEvent(entry) };
          for (const listener of this.#listeners) {
            listener(event);
          }
        }
      } catch (error) {
        if (!signal.aborted) {
          this.#logger.warn({ err: error }, 'reading live events failed');
          await wait(PAUSE_AFTER_FAILURE_MS, undefined, { signal }).catch(() => undefined);
        }
      }
    }
  }

  #read(): Promise<unknown> {
    return this.#blockingRedis.xread('COUNT', 100, 'BLOCK', BLOCK_MS, 'STREAMS', EVENT_STREAM, this.#last);
  }
}
