/** The producers' side of transcripts, which the audio does not wait for (decisions A8). */
import { transcriptId } from './names.ts';
import type { TranscriptPayload } from './payloads.ts';
import { SequelQueue, type SequelQueueOptions } from './sequel-queue.ts';

/** Whoever takes the turns counts its tries, since the last part that was heard (transcript-consumer.ts): BullMQ is to go on. */
const ATTEMPTS = 1_000_000;

export class TranscriptQueue extends SequelQueue {
  constructor(options: SequelQueueOptions) {
    super('transcript', ATTEMPTS, options);
  }

  async add(tenant: string, jobId: string, name: string): Promise<void> {
    const payload: TranscriptPayload = { version: 1, tenant, jobId, name };
    await this.follow('transcribe', transcriptId(jobId, name), payload);
  }
}
