/**
 * The workers' side of what is told to others about a job. The end of the extraction releases the `completion` job, which
 * adds one announcement each; their ids follow from the job's, so a crash in between announces once.
 */
import { type BackoffStrategy, type Job, type Telemetry, WaitingChildrenError, Worker } from 'bullmq';
import type { Logger } from '../logger.ts';
import { type AnnouncementQueue, VOICE_SCHEDULE_SECONDS } from './announcement-queue.ts';
import { voiceState } from './announcement-state.ts';
import { type Announced, scheduleBackoff, type Try, tell } from './announcement-tries.ts';
import { closeWorker } from './close-worker.ts';
import { type JobRecord, readJobRecord } from './job-record.ts';
import { jobKey, queueNames, voiceId, webhookId } from './names.ts';
import {
  CompletionPayload,
  type VoiceOutcome,
  VoicePayload,
  type WebhookDelivered,
  WebhookPayload,
} from './payloads.ts';
import { KEY_PREFIX, type Redis } from './redis.ts';
import { stallCheckMs } from './stall-check.ts';

interface AnnouncementHandlers {
  readonly webhook: (payload: WebhookPayload, attempt: Try) => Promise<Announced<WebhookDelivered>>;
  readonly voice: (payload: VoicePayload, attempt: Try) => Promise<Announced<VoiceOutcome>>;
}

export interface AnnouncementConsumerOptions {
  /** A connection of the role `worker`. The caller closes it. */
  readonly redis: Redis;
  /** Where follow-up announcements are added. The caller closes it. */
  readonly queue: AnnouncementQueue;
  /** When a webhook is tried, seconds after the event; as many tries as entries. */
  readonly webhookSchedule: readonly number[];
  readonly lockSeconds: number;
  readonly logger: Logger;
  readonly handlers: AnnouncementHandlers;
  readonly telemetry?: Telemetry | undefined;
}

export interface AnnouncementConsumer {
  /** Stops taking announcements and lets those under way end for `graceMs`; what is left is made by another worker. */
  close(graceMs: number): Promise<void>;
}

/** An announcement must survive many crashes of whoever makes it. */
const MAX_STALLED = 100;
const CONCURRENCY = 16;

export function consumeAnnouncements(options: AnnouncementConsumerOptions): AnnouncementConsumer {
  const { handlers, webhookSchedule } = options;
  const workers = [
    startConsumer(options, queueNames.completion, (job, token) => complete(job, token, options)),
    startConsumer(
      options,
      queueNames.webhook,
      (job) => tell(job, WebhookPayload.parse(job.data), handlers.webhook),
      scheduleBackoff(webhookSchedule, (job) => {
        const { scheduleFromMs, eventTimeMs } = WebhookPayload.parse(job.data);
        return scheduleFromMs ?? eventTimeMs;
      }),
    ),
    startConsumer(
      options,
      queueNames.voice,
      (job) => sendVoice(job, options),
      scheduleBackoff(VOICE_SCHEDULE_SECONDS, (job) => job.timestamp),
    ),
  ];
  return {
    async close(graceMs) {
      // There is nothing to give up: a try that is cut off is made again, and each kind knows how to do that once.
      await Promise.all(workers.map((worker) => closeWorker(worker, graceMs, () => undefined)));
    },
  };
}

function startConsumer(
  { redis, lockSeconds, logger, telemetry }: AnnouncementConsumerOptions,
  name: string,
  processor: (job: Job, token: string) => Promise<unknown>,
  backoffStrategy?: BackoffStrategy,
): Worker {
  const lockMs = lockSeconds * 1000;
  const worker = new Worker(name, async (job, token = '') => processor(job, token), {
    connection: redis,
    prefix: KEY_PREFIX,
    concurrency: CONCURRENCY,
    lockDuration: lockMs,
    stalledInterval: stallCheckMs(lockSeconds),
    maxStalledCount: MAX_STALLED,
    ...(telemetry && { telemetry }),
    ...(backoffStrategy ? { settings: { backoffStrategy } } : {}),
  });
  worker.on('error', (error) => logger.warn({ error: error.message }, `${name} queue`));
  return worker;
}

async function complete(
  job: Job,
  token: string,
  { redis, queue }: AnnouncementConsumerOptions,
): Promise<object> {
  const { jobId } = CompletionPayload.parse(job.data);
  // A parent that is started while its child is unfinished would use up its tries.
  if (await job.moveToWaitingChildren(token)) {
    throw new WaitingChildrenError();
  }
  const record = readJobRecord(jobId, await redis.hgetall(jobKey('extract', jobId)));
  if (record !== undefined) {
    await announce(record, queue);
  }
  return {};
}

async function announce(
  { jobId, payload, status, finishedAtMs }: JobRecord,
  queue: AnnouncementQueue,
): Promise<void> {
  const { webhook, voiceMessage } = payload.options;
  if (webhook !== undefined) {
    await queue.addWebhook({
      version: 1,
      tenant: payload.tenant,
      jobId,
      deliveryId: webhookId(jobId),
      event: status === 'completed' ? 'job.completed' : 'job.failed',
      url: webhook,
      eventTimeMs: finishedAtMs ?? Date.now(),
    });
  }
  if (voiceMessage !== undefined && status === 'completed') {
    await queue.addVoice(payload.tenant, jobId, voiceId(jobId), voiceMessage);
  }
}

async function sendVoice(
  job: Job,
  { redis, queue, handlers }: AnnouncementConsumerOptions,
): Promise<VoiceOutcome> {
  const payload = VoicePayload.parse(job.data);
  const outcome = await tell(job, payload, handlers.voice);
  const record = readJobRecord(payload.jobId, await redis.hgetall(jobKey('extract', payload.jobId)));
  const webhook = record?.payload.options.webhook;
  if (record !== undefined && webhook !== undefined) {
    await queue.addWebhook({
      version: 1,
      tenant: payload.tenant,
      jobId: payload.jobId,
      deliveryId: webhookId(payload.sendId),
      event: 'voice.updated',
      url: webhook,
      voiceMessage: voiceState(outcome, job.attemptsMade + 1, record.result?.voice?.fitsVoiceBubble ?? null),
      eventTimeMs: Date.now(),
    });
  }
  return outcome;
}
