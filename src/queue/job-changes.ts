/** Tells when a job may have changed, for those who watch it; what it is now is read from its record. */

import { EventEmitter } from 'node:events';
import { QueueEvents } from 'bullmq';
import type { Logger } from '../observe/logger.ts';
import { redisNow } from '../redis/clock.ts';
import type { Redis } from '../redis/connection.ts';
import { subscribe } from '../redis/subscription.ts';
import { CHANGE_CHANNEL, queueNames } from './names.ts';
import { connectionOptions } from './open-queue.ts';

/** BullMQ tells of every job that is added, too; nobody reads that while nobody watches. */
const IDLE_MS = 60_000;
/** How far back the first watcher's events begin, so that none is missed on the way; more than the clocks may differ. */
const LOOK_BACK_MS = 30_000;

export class JobChanges {
  readonly #watchers = new EventEmitter().setMaxListeners(0);
  readonly #redis: Redis;
  readonly #warn: (error: Error) => void;
  readonly #unsubscribe: () => void;
  #events: QueueEvents | undefined;
  #idle: NodeJS.Timeout | undefined;
  readonly #closing = new AbortController();

  /** @param redis a connection of the role `worker`; the caller closes it */
  constructor(redis: Redis, logger: Logger) {
    this.#redis = redis;
    this.#warn = (error: Error): void => logger.warn({ error: error.message }, 'job changes');
    this.#unsubscribe = subscribe(
      redis,
      { [CHANGE_CHANNEL]: (jobId) => this.#watchers.emit(jobId) },
      this.#warn,
    );
  }

  /** Aborted when nobody may go on watching, because the process stops. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Ends every watch; then the connections may be closed. */
  stop(): void {
    this.#closing.abort();
  }

  /** Calls back at each change until the returned function is called. */
  watch(jobId: string, changed: () => void): () => void {
    clearTimeout(this.#idle);
    this.#watchers.on(jobId, changed);
    this.#events ??= this.#readEvents();
    return () => {
      this.#watchers.off(jobId, changed);
      if (this.#watchers.eventNames().length === 0) {
        clearTimeout(this.#idle);
        this.#idle = setTimeout(() => this.#endEvents().catch(this.#warn), IDLE_MS).unref();
      }
    };
  }

  /** Starts and ends are BullMQ's own; also those that no worker of ours saw, such as a stall. */
  #readEvents(): QueueEvents {
    const events = new QueueEvents(queueNames.extract, {
      ...connectionOptions(this.#redis),
      lastEventId: `${redisNow() - LOOK_BACK_MS}-0`,
    });
    events.on('error', this.#warn);
    const tell = ({ jobId }: { jobId: string }): unknown => this.#watchers.emit(jobId);
    events.on('active', tell);
    events.on('completed', tell);
    events.on('failed', tell);
    return events;
  }

  async #endEvents(): Promise<void> {
    const events = this.#events;
    this.#events = undefined;
    await events?.close();
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    this.#unsubscribe();
    await this.#endEvents();
  }
}
