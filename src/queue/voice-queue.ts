/** The producers' side of a job's voice message. */

import { Job, type Queue, type Telemetry } from 'bullmq';
import type { VoiceMessageRequest } from '../contract/job-request.ts';
import type { Logger } from '../observe/logger.ts';
import type { Redis } from '../redis/connection.ts';
import { noteVoiceSend } from './bullmq-internals.ts';
import { openQueue } from './open-queue.ts';
import type { VoicePayload } from './payloads.ts';

interface VoiceQueueOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long the record of a job is kept, seconds. */
  readonly recordSeconds: number;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/**
 * Ten tries over an hour (decisions C), seconds after the first. The second comes when the lease of a gateway that died has run
 * out (6 s, src/http/idempotency.ts): earlier it would hear that the first one is still running.
 */
export const VOICE_SCHEDULE_SECONDS = [0, 8, 20, 60, 180, 420, 900, 1500, 2400, 3600] as const;

/** A record that vanished while its job could still be asked for would send a second time. */
const KEEP_LONGER_SECONDS = 24 * 60 * 60;

export class VoiceQueue {
  readonly #options: VoiceQueueOptions;
  readonly #queue: Queue;

  constructor(options: VoiceQueueOptions) {
    this.#options = options;
    this.#queue = openQueue('voice', options.redis, options.logger, options.telemetry);
  }

  /** Sends the result of a job into a chat. */
  async add(tenant: string, jobId: string, sendId: string, request: VoiceMessageRequest): Promise<void> {
    const payload: VoicePayload = { version: 1, tenant, jobId, sendId, request };
    const keep = { age: this.#options.recordSeconds + KEEP_LONGER_SECONDS, limit: 100 };
    await this.#queue.add('send', payload, {
      jobId: sendId,
      attempts: VOICE_SCHEDULE_SECONDS.length,
      backoff: { type: 'schedule' },
      removeOnComplete: keep,
      removeOnFail: keep,
      stackTraceLimit: 0,
    });
  }

  /** Sends a finished result once more, or for the first time; the job then tells of this sending. */
  async resend(tenant: string, jobId: string, sendId: string, request: VoiceMessageRequest): Promise<void> {
    await noteVoiceSend(this.#options.redis, jobId, sendId);
    await this.add(tenant, jobId, sendId, request);
  }

  /** Ends the wait of a sending. */
  async promote(sendId: string): Promise<void> {
    const job = await Job.fromId(this.#queue, sendId);
    if (job !== undefined && (await job.isDelayed())) {
      await job.promote();
    }
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}
