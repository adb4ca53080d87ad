/** The producers' side of transcripts: each is a job of its own, which the audio does not wait for (decisions A8). */
import type { Queue, Telemetry } from 'bullmq';
import type { Logger } from '../observe/logger.ts';
import type { Redis } from '../redis/connection.ts';
import { transcriptId } from './names.ts';
import { openQueue, promote } from './open-queue.ts';
import type { TranscriptPayload } from './payloads.ts';

interface TranscriptQueueOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long the record of a job is kept, seconds. */
  readonly recordSeconds: number;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/** Whoever takes the turns counts its tries, since the last part that was heard (transcript-consumer.ts): BullMQ is to go on. */
const ATTEMPTS = 1_000_000;

/** While its job can be asked for, how its transcript ended is asked for, too. */
const KEEP_LONGER_SECONDS = 24 * 60 * 60;

export class TranscriptQueue {
  readonly #options: TranscriptQueueOptions;
  readonly #queue: Queue;

  constructor(options: TranscriptQueueOptions) {
    this.#options = options;
    this.#queue = openQueue('transcript', options.redis, options.logger, options.telemetry);
  }

  /** Adding the same a second time changes nothing. */
  async add(tenant: string, jobId: string, name: string): Promise<void> {
    const payload: TranscriptPayload = { version: 1, tenant, jobId, name };
    const keep = { age: this.#options.recordSeconds + KEEP_LONGER_SECONDS, limit: 100 };
    await this.#queue.add('transcribe', payload, {
      jobId: transcriptId(jobId, name),
      attempts: ATTEMPTS,
      backoff: { type: 'schedule' },
      removeOnComplete: keep,
      removeOnFail: keep,
      stackTraceLimit: 0,
    });
  }

  /** Ends the wait of a transcript. */
  promote(id: string): Promise<void> {
    return promote(this.#queue, id);
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}
