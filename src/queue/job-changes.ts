/** Tells when a job may have changed, for those who watch it; what it is now is read from its record. */
import { EventEmitter } from 'node:events';
import { QueueEvents } from 'bullmq';
import type { Logger } from '../logger.ts';
import { CHANGE_CHANNEL, queueNames } from './names.ts';
import { KEY_PREFIX, type Redis } from './redis.ts';

export class JobChanges {
  readonly #watchers = new EventEmitter().setMaxListeners(0);
  readonly #subscriber: Redis;
  readonly #events: QueueEvents;
  readonly #closing = new AbortController();

  /** @param redis a connection of the role `worker`; the caller closes it */
  constructor(redis: Redis, logger: Logger) {
    const warn = (error: Error): void => logger.warn({ error: error.message }, 'job changes');
    this.#subscriber = redis.duplicate();
    this.#subscriber.on('error', warn);
    this.#subscriber.on('message', (_channel, jobId: string) => this.#watchers.emit(jobId));
    this.#subscriber.subscribe(CHANGE_CHANNEL).catch(warn);
    // Starts and ends are BullMQ's own; also those that no worker of ours saw, such as a stall.
    this.#events = new QueueEvents(queueNames.extract, { connection: redis, prefix: KEY_PREFIX });
    this.#events.on('error', warn);
    const tell = ({ jobId }: { jobId: string }): unknown => this.#watchers.emit(jobId);
    this.#events.on('active', tell);
    this.#events.on('completed', tell);
    this.#events.on('failed', tell);
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
    this.#watchers.on(jobId, changed);
    return () => this.#watchers.off(jobId, changed);
  }

  async close(): Promise<void> {
    this.#subscriber.disconnect();
    await this.#events.close();
  }
}
