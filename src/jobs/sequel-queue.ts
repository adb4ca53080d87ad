/** The producers' side of what follows a job: each piece is a job of its own, whose id follows from the job's, so that adding it twice changes nothing. */
import type { Queue, Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import { openQueue, promote } from './open-queue.ts';

export interface SequelQueueOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long the record of a job is kept, seconds. */
  readonly recordSeconds: number;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/** A record that vanished while its job could still be asked for would be followed a second time. */
const KEEP_LONGER_SECONDS = 24 * 60 * 60;

export class SequelQueue {
  protected readonly options: SequelQueueOptions;
  protected readonly queue: Queue;
  readonly #attempts: number;

  /** @param attempts of each piece, by the schedule of whoever consumes it */
  constructor(name: 'voice' | 'transcript' | 'destination', attempts: number, options: SequelQueueOptions) {
    this.options = options;
    this.queue = openQueue(name, options.redis, options.logger, options.telemetry);
    this.#attempts = attempts;
  }

  protected async follow(verb: string, id: string, payload: object): Promise<void> {
    const keep = { age: this.options.recordSeconds + KEEP_LONGER_SECONDS, limit: 100 };
    await this.queue.add(verb, payload, {
      jobId: id,
      attempts: this.#attempts,
      backoff: { type: 'schedule' },
      removeOnComplete: keep,
      removeOnFail: keep,
      stackTraceLimit: 0,
    });
  }

  /** Ends the wait of a piece. */
  promote(id: string): Promise<void> {
    return promote(this.queue, id);
  }

  async close(): Promise<void> {
    await this.queue.close();
  }
}
