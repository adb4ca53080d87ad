/**
 * When an extraction ends, its `completion` job adds the follow-ups: webhook, voice message,
 * transcripts and deliveries to destinations. Their ids derive from the job's, so a crash in
 * between adds each only once.
 */

import { type Job, WaitingChildrenError } from 'bullmq';
import { redisNow } from 'soundpost-kit/redis/clock';
import { type JobRecord, readableRecord } from '../jobs/job-record.ts';
import { voiceId, webhookId } from '../jobs/names.ts';
import { closeWorker, openWorker, type WorkerSettings } from '../jobs/open-worker.ts';
import { CompletionPayload, filesOf, readPayload } from '../jobs/payloads.ts';
import type { JobFollowUps } from './job-followups.ts';

interface CompletionOptions extends WorkerSettings {
  /** The caller closes it. */
  readonly followUps: JobFollowUps;
}

interface CompletionConsumer {
  /** Takes no more ends and waits `graceMs`; another worker adds the rest. */
  close(graceMs: number): Promise<void>;
}

const AT_A_TIME = 16;

export function consumeCompletions(options: CompletionOptions): CompletionConsumer {
  const worker = openWorker('completion', (job, token = '') => complete(job, token, options), options, {
    concurrency: AT_A_TIME,
  });
  return { close: (graceMs) => closeWorker(worker, graceMs, () => undefined) };
}

async function complete(job: Job, token: string, { redis, followUps }: CompletionOptions): Promise<object> {
  const { jobId } = readPayload(CompletionPayload, job.data);
  // Starting a parent while its child is unfinished would use up its attempts.
  if (await job.moveToWaitingChildren(token)) {
    throw new WaitingChildrenError();
  }
  const record = await readableRecord(redis, jobId);
  if (record !== undefined) {
    await addFollowUps(record, followUps);
  }
  return {};
}

async function addFollowUps(record: JobRecord, followUps: JobFollowUps): Promise<void> {
  const { jobId, payload, status, result, finishedAtMs } = record;
  const { tenant, options } = payload;
  const event = status === 'completed' ? 'job.completed' : 'job.failed';
  await followUps.addWebhook(record, { deliveryId: webhookId(jobId), event }, finishedAtMs ?? redisNow());
  if (options.voiceMessage !== undefined && status === 'completed') {
    const sending = { tenant, jobId, sendId: voiceId(jobId), part: 0 };
    await followUps.addVoice({ ...sending, request: options.voiceMessage });
  }
  for (const { name, heardAs } of result?.transcripts ?? []) {
    if (heardAs === undefined) await followUps.addTranscript(tenant, jobId, name);
  }
  for (const { name } of result === null ? [] : filesOf(result)) await followUps.addPut(record, name);
}
