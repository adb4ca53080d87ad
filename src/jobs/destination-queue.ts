/** The producers' side of putting finished files to their destinations (decisions A8). */
import { destinationOf } from './destinations.ts';
import type { JobRecord } from './job-record.ts';
import { destinationId } from './names.ts';
import { type DestinationPayload, filesOf, type StoredTranscript } from './payloads.ts';
import { SequelQueue, type SequelQueueOptions } from './sequel-queue.ts';

/** Three tries, as of a download: seconds after the first. */
export const PUT_SCHEDULE_SECONDS = [0, 1, 3] as const;

export class DestinationQueue extends SequelQueue {
  constructor(options: SequelQueueOptions) {
    super('destination', PUT_SCHEDULE_SECONDS.length, options);
  }

  /** Puts each file of a job that has just completed and has a destination. */
  async add(record: JobRecord): Promise<void> {
    const files = record.result === null ? [] : filesOf(record.result);
    for (const { name } of files) await this.#add(record, name);
  }

  /** Puts a transcript that has just completed, where it has a destination. */
  addTranscript(record: JobRecord, transcript: StoredTranscript): Promise<void> {
    return this.#add(record, transcript.name, transcript);
  }

  async #add({ jobId, payload }: JobRecord, name: string, transcript?: StoredTranscript): Promise<void> {
    const destination = destinationOf(payload, name);
    if (destination === undefined) return;
    const { origin } = new URL(destination.url);
    const about = { version: 1, tenant: payload.tenant, jobId, name, origin } as const;
    const put: DestinationPayload = transcript === undefined ? about : { ...about, transcript };
    await this.follow('put', destinationId(jobId, name), put);
  }
}
