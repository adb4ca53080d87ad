/** The producers' side of putting finished files to their destinations (decisions A8). */
import type { Queue, Telemetry } from 'bullmq';
import type { Logger } from '../observe/logger.ts';
import type { Redis } from '../redis/connection.ts';
import { destinationOf } from './destinations.ts';
import type { JobRecord } from './job-record.ts';
import { destinationId } from './names.ts';
import { openQueue, promote } from './open-queue.ts';
import { type DestinationPayload, filesOf, type StoredTranscript } from './payloads.ts';

interface DestinationQueueOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long the record of a job is kept, seconds. */
  readonly recordSeconds: number;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/** Three tries, as of a download: seconds after the first. */
export const PUT_SCHEDULE_SECONDS = [0, 1, 3] as const;

/** A record that vanished while its job could still be asked for would put a second time. */
const KEEP_LONGER_SECONDS = 24 * 60 * 60;

export class DestinationQueue {
  readonly #options: DestinationQueueOptions;
  readonly #queue: Queue;

  constructor(options: DestinationQueueOptions) {
    this.#options = options;
    this.#queue = openQueue('destination', options.redis, options.logger, options.telemetry);
  }

  /** Puts each file of a job that has just completed and has a destination; once, however often it is called. */
  async add(record: JobRecord): Promise<void> {
    for (const { name } of record.result === null ? [] : filesOf(record.result))
      await this.#add(record, name);
  }

  /** Puts a transcript that has just completed, where it has a destination; once as well. */
  addTranscript(record: JobRecord, transcript: StoredTranscript): Promise<void> {
    return this.#add(record, transcript.name, transcript);
  }

  async #add({ jobId, payload }: JobRecord, name: string, transcript?: StoredTranscript): Promise<void> {
    const destination = destinationOf(payload, name);
    if (destination === undefined) return;
    const { origin } = new URL(destination.url);
    const { tenant } = payload;
    const put: DestinationPayload = {
      version: 1,
      tenant,
      jobId,
      name,
      origin,
      ...(transcript && { transcript }),
    };
    const keep = { age: this.#options.recordSeconds + KEEP_LONGER_SECONDS, limit: 100 };
    await this.#queue.add('put', put, {
      jobId: destinationId(jobId, name),
      attempts: PUT_SCHEDULE_SECONDS.length,
      backoff: { type: 'schedule' },
      removeOnComplete: keep,
      removeOnFail: keep,
      stackTraceLimit: 0,
    });
  }

  /** Ends the wait of a put. */
  promote(id: string): Promise<void> {
    return promote(this.#queue, id);
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}
