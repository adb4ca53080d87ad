/** Notifies watchers when a job may have changed; they read its record for the new state. */

import { EventEmitter } from 'node:events';
import { QueueEvents } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { subscribe } from 'soundpost-kit/redis/subscription';
import { ownerOf } from './bullmq-internals.ts';
import { CHANGE_CHANNEL, queueNames } from './names.ts';
import { connectionOptions } from './open-queue.ts';
import { REVOKED_CHANNEL } from './tenants/api-keys.ts';

/** BullMQ reports every added job; without watchers these events are not read. */
const IDLE_MS = 60_000;
/** The first watcher's events start this far back, so none is missed; more than clocks differ. */
const LOOK_BACK_MS = 30_000;
/** Cached tenants of jobs, used while all jobs of a key are watched; about 100 bytes each. */
const KNOWN_OWNERS = 10_000;

/** Watches all jobs of a key. */
interface KeyWatcher {
  /** A job of the key is new or may have changed. */
  readonly changed: (jobId: string) => void;
  /** Changes may be lost: any job of the key may have changed. */
  readonly missed: () => void;
}

export class JobChanges {
  readonly #watchers = new EventEmitter().setMaxListeners(0);
  readonly #revocations = new EventEmitter().setMaxListeners(0);
  readonly #keyWatchers = new Map<string, Set<KeyWatcher>>();
  /** Tenants of jobs, in the order of their lookup. */
  readonly #owners = new Map<string, Promise<string | undefined>>();
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
      {
        [CHANGE_CHANNEL]: (jobId) => this.#notify(jobId),
        [REVOKED_CHANNEL]: (keyId) => this.#revocations.emit(keyId),
      },
      this.#warn,
      () => this.#notifyMissed(),
    );
  }

  /** Aborted when the process stops. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Ends every watch; then the connections can be closed. */
  stop(): void {
    this.#closing.abort();
  }

  /** Calls back at each change until the returned function is called. */
  watch(jobId: string, changed: () => void): () => void {
    this.#watchers.on(jobId, changed);
    return this.#begin(() => this.#watchers.off(jobId, changed));
  }

  /** Calls back for any job of a key until the returned function is called; may repeat a change. */
  watchKey(keyId: string, watcher: KeyWatcher): () => void {
    const watchers = this.#keyWatchers.get(keyId) ?? new Set();
    this.#keyWatchers.set(keyId, watchers.add(watcher));
    return this.#begin(() => {
      watchers.delete(watcher);
      if (watchers.size === 0) this.#keyWatchers.delete(keyId);
    });
  }

  /** Calls back when the key is revoked, until the returned function is called. */
  watchRevocation(keyId: string, revoked: () => void): () => void {
    this.#revocations.on(keyId, revoked);
    return () => this.#revocations.off(keyId, revoked);
  }

  /** @returns calls `end`, and stops reading events once nobody is watching */
  #begin(end: () => void): () => void {
    clearTimeout(this.#idle);
    this.#events ??= this.#readEvents();
    return () => {
      end();
      if (this.#watchers.eventNames().length === 0 && this.#keyWatchers.size === 0) {
        clearTimeout(this.#idle);
        this.#idle = setTimeout(() => this.#endEvents().catch(this.#warn), IDLE_MS).unref();
      }
    };
  }

  #notify(jobId: string): void {
    this.#watchers.emit(jobId);
    if (this.#keyWatchers.size > 0) {
      this.#notifyKeyWatchers(jobId).catch((error: Error) => {
        this.#warn(error);
        this.#notifyMissed();
      });
    }
  }

  async #notifyKeyWatchers(jobId: string): Promise<void> {
    const owner = await this.#ownerOf(jobId);
    for (const { changed } of this.#watchersOf(owner ?? '')) changed(jobId);
  }

  /** Never changes, so each job is looked up once. */
  #ownerOf(jobId: string): Promise<string | undefined> {
    const known = this.#owners.get(jobId);
    if (known !== undefined) return known;
    const found = ownerOf(this.#redis, jobId);
    this.#owners.set(jobId, found);
    const [oldest] = this.#owners.size > KNOWN_OWNERS ? this.#owners.keys() : [];
    if (oldest !== undefined) this.#owners.delete(oldest);
    const forget = (): unknown => this.#owners.delete(jobId);
    found.then((owner) => owner ?? forget(), forget);
    return found;
  }

  #notifyMissed(): void {
    for (const keyId of [...this.#keyWatchers.keys()]) {
      for (const { missed } of this.#watchersOf(keyId)) missed();
    }
  }

  #watchersOf(keyId: string): readonly KeyWatcher[] {
    return [...(this.#keyWatchers.get(keyId) ?? [])];
  }

  /** BullMQ's own events include changes that no worker of ours saw, such as a stall. */
  #readEvents(): QueueEvents {
    const events = new QueueEvents(queueNames.extract, {
      ...connectionOptions(this.#redis),
      lastEventId: `${redisNow() - LOOK_BACK_MS}-0`,
    });
    events.on('error', this.#warn);
    const notify = ({ jobId }: { jobId: string }): void => this.#notify(jobId);
    events.on('active', notify);
    events.on('completed', notify);
    events.on('failed', notify);
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
