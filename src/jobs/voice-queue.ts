/** The producers' side of a job's voice message. */
import { Job } from 'bullmq';
import type { VoiceMessageRequest } from 'soundpost-contract/job-request';
import { clearSending, noteVoiceSend } from './bullmq-internals.ts';
import { notePartId } from './names.ts';
import { VoicePayload } from './payloads.ts';
import { SequelQueue, type SequelQueueOptions } from './sequel-queue.ts';

/**
 * Ten tries over an hour (decisions C), seconds after the first. The second comes when the lease of a gateway that died has run
 * out (6 s, packages/kit/src/http/idempotency.ts): earlier it would hear that the first one is still running.
 */
export const VOICE_SCHEDULE_SECONDS = [0, 8, 20, 60, 180, 420, 900, 1500, 2400, 3600] as const;

/** How the job ended; undefined while it goes on, such as because somebody else asked for that at the same moment. */
async function endOf(job: Job): Promise<'completed' | 'failed' | undefined> {
  const state = await job.getState();
  return state === 'completed' || state === 'failed' ? state : undefined;
}

export class VoiceQueue extends SequelQueue {
  constructor(options: SequelQueueOptions) {
    super('voice', VOICE_SCHEDULE_SECONDS.length, options);
  }

  /**
   * Sends the result of a job into a chat.
   * @param part which note of a run; whoever has sent one adds the next
   */
  async add(
    tenant: string,
    jobId: string,
    sendId: string,
    request: VoiceMessageRequest,
    part = 0,
  ): Promise<void> {
    const payload: VoicePayload = { version: 1, tenant, jobId, sendId, part, round: 0, request };
    await this.follow('send', notePartId(sendId, part), payload);
  }

  /** Sends a finished result once more, or for the first time; the job then tells of this sending. */
  async resend(tenant: string, jobId: string, sendId: string, request: VoiceMessageRequest): Promise<void> {
    await noteVoiceSend(this.options.redis, jobId, sendId);
    await this.add(tenant, jobId, sendId, request);
  }

  /**
   * Goes on with a run that a note of it stopped, from that note on.
   * @returns false when that was sent to somebody else, or is no longer known
   */
  async goOn(sendId: string, part: number, { instance, number }: VoiceMessageRequest): Promise<boolean> {
    const partId = notePartId(sendId, part);
    const job = await Job.fromId(this.queue, partId);
    if (job === undefined) return false;
    const payload = VoicePayload.parse(job.data);
    const { request, round } = payload;
    if (request.instance !== instance || request.number !== number) return false;
    const state = await endOf(job);
    if (state === undefined) return true;
    await job.updateData({ ...payload, round: round + 1 });
    // Whoever asks for it knows that nobody knows whether it was sent.
    await clearSending(this.options.redis, partId);
    await job.retry(state, { resetAttemptsMade: true, resetAttemptsStarted: true }).catch(async (error) => {
      if ((await endOf(job)) !== undefined) throw error;
    });
    return true;
  }
}
