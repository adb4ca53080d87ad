/**
 * Shares of a worker's places (decisions A6, docs/decisions/0004-fairness.md). A key without a
 * place begins at once, beyond the places if need be: the system shares the cores, and nothing is
 * interrupted.
 */
import type { Worker } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import { bringFirst, noticeConcurrency } from './bullmq-internals.ts';

interface SharesOptions {
  readonly redis: Redis;
  readonly worker: Worker;
  /** Keys without one may take up to as many again. */
  readonly places: number;
  /** The key of each running job. */
  readonly held: () => readonly string[];
  readonly logger: Logger;
}

/** Finds jobs whose message was lost. */
const LOOK_EVERY_MS = 1000;

export class Shares {
  readonly #options: SharesOptions;
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;
  #isWanted = false;

  constructor(options: SharesOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.look(), LOOK_EVERY_MS);
  }

  /** Whether a job that was taken may start; otherwise it goes back. Call before it counts. */
  admits(tenant: string): boolean {
    const { worker, places, held } = this.#options;
    worker.concurrency = places;
    const keys = held();
    return keys.length < places || (keys.length < 2 * places && !keys.includes(tenant));
  }

  /** On a full worker, takes one more job if a key without a place has one waiting. */
  async look(): Promise<void> {
    this.#isWanted = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    while (this.#isWanted && this.#isFull()) {
      this.#isWanted = false;
      await this.#takeMore();
    }
    this.#isLooking = false;
  }

  #isFull(): boolean {
    const { worker, places, held } = this.#options;
    const { length } = held();
    return length >= places && length < 2 * places && !worker.isPaused();
  }

  async #takeMore(): Promise<void> {
    const { worker, places, held } = this.#options;
    const isFound = await this.#bring(held());
    worker.concurrency = isFound ? Math.max(places, held().length + 1) : places;
    if (isFound) noticeConcurrency(worker);
  }

  /** Call when a job has ended: its place goes to a key below its share, if one waits. */
  left(): void {
    const { places, held } = this.#options;
    const keys = held();
    if (keys.length >= places) return void this.look();
    const byKey = Map.groupBy(keys, (key) => key);
    const share = Math.ceil(places / byKey.size);
    const served = [...byKey.keys()].filter((key) => (byKey.get(key)?.length ?? 0) >= share);
    // Redis runs this before BullMQ's script that ends the job and takes the next one.
    if (byKey.size > 1 && served.length > 0) void this.#bring(served);
  }

  async #bring(served: readonly string[]): Promise<boolean> {
    try {
      return await bringFirst(this.#options.redis, [...new Set(served)]);
    } catch (error) {
      this.#options.logger.debug({ err: error }, 'the queue could not be looked at');
      return false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
