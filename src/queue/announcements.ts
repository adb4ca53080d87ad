/**
 * What is told to others about a job: its webhook and its voice message. The end of the extraction releases the `completion`
 * job, which adds one announcement each; their ids follow from the job's, so a crash in between announces once.
 */
import { type BackoffStrategy, type Job, Queue, WaitingChildrenError, Worker } from 'bullmq';
import type { Logger } from '../logger.ts';
import { type Announced, scheduleBackoff, type Try, tell } from './announcement-tries.ts';
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

export interface AnnouncementHandlers {
  readonly webhook: (payload: WebhookPayload, attempt: Try) => Promise<Announced<WebhookDelivered>>;
  readonly voice: (payload: VoicePayload, attempt: Try) => Promise<Announced<VoiceOutcome>>;
}

export interface AnnouncementOptions {
  /** A connection of the role `worker`. The caller closes it. */
  readonly redis: Redis;
  /** When a webhook is tried, seconds after the event; as many tries as entries. */
  readonly webhookSchedule: readonly number[];
  /** How long the record of a finished announcement is kept, seconds. */
  readonly recordSeconds: number;
  readonly lockSeconds: number;
  readonly logger: Logger;
  readonly handlers: AnnouncementHandlers;
}

/** Ten tries over an hour (decisions C), seconds after the first. */
const VOICE_SCHEDULE_SECONDS = [0, 5, 20, 60, 180, 420, 900, 1500, 2400, 3600] as const;

/** An announcement must survive many crashes of whoever makes it. */
const MAX_STALLED = 100;
const CONCURRENCY = 16;
/** A record that vanished while its job could still be asked for would announce a second time. */
const KEEP_LONGER_SECONDS = 24 * 60 * 60;

export class Announcements {
  readonly #options: AnnouncementOptions;
  readonly #webhooks: Queue;
  readonly #voices: Queue;
  readonly #workers: readonly Worker[];

  constructor(options: AnnouncementOptions) {
    this.#options = options;
    const { handlers, webhookSchedule } = options;
    this.#webhooks = this.#queue(queueNames.webhook);
    this.#voices = this.#queue(queueNames.voice);
    this.#workers = [
      this.#worker(queueNames.completion, (job, token) => this.#complete(job, token)),
      this.#worker(
        queueNames.webhook,
        (job) => tell(job, WebhookPayload.parse(job.data), handlers.webhook),
        scheduleBackoff(webhookSchedule, (job) => WebhookPayload.parse(job.data).eventTimeMs),
      ),
      this.#worker(
        queueNames.voice,
        (job) => tell(job, VoicePayload.parse(job.data), handlers.voice),
        scheduleBackoff(VOICE_SCHEDULE_SECONDS, (job) => job.timestamp),
      ),
    ];
  }

  #queue(name: string): Queue {
    const queue = new Queue(name, { connection: this.#options.redis, prefix: KEY_PREFIX });
    queue.on('error', (error: Error) => this.#options.logger.warn({ error: error.message }, `${name} queue`));
    return queue;
  }

  #worker(
    name: string,
    processor: (job: Job, token: string) => Promise<unknown>,
    backoffStrategy?: BackoffStrategy,
  ): Worker {
    const lockMs = this.#options.lockSeconds * 1000;
    const worker = new Worker(name, async (job, token = '') => processor(job, token), {
      connection: this.#options.redis,
      prefix: KEY_PREFIX,
      concurrency: CONCURRENCY,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      maxStalledCount: MAX_STALLED,
      ...(backoffStrategy ? { settings: { backoffStrategy } } : {}),
    });
    worker.on('error', (error) => this.#options.logger.warn({ error: error.message }, `${name} queue`));
    return worker;
  }

  async #complete(job: Job, token: string): Promise<object> {
    const { jobId } = CompletionPayload.parse(job.data);
    // A parent that is started while its child is unfinished would use up its tries.
    if (await job.moveToWaitingChildren(token)) {
      throw new WaitingChildrenError();
    }
    const record = readJobRecord(jobId, await this.#options.redis.hgetall(jobKey('extract', jobId)));
    if (record !== undefined) {
      await this.#announce(record);
    }
    return {};
  }

  async #announce(record: JobRecord): Promise<void> {
    const { jobId, payload } = record;
    const { webhook, voiceMessage } = payload.options;
    if (webhook !== undefined) {
      await this.#addWebhook(webhookId(jobId), {
        version: 1,
        tenant: payload.tenant,
        jobId,
        event: record.status === 'completed' ? 'job.completed' : 'job.failed',
        url: webhook,
        eventTimeMs: record.finishedAtMs ?? Date.now(),
      });
    }
    if (voiceMessage !== undefined && record.status === 'completed') {
      const data: VoicePayload = { version: 1, tenant: payload.tenant, jobId };
      await this.#voices.add('send', data, this.#jobOptions(voiceId(jobId), VOICE_SCHEDULE_SECONDS.length));
    }
  }

  async #addWebhook(id: string, data: WebhookPayload): Promise<void> {
    await this.#webhooks.add(data.event, data, this.#jobOptions(id, this.#options.webhookSchedule.length));
  }

  #jobOptions(jobId: string, attempts: number): object {
    const keep = { age: this.#options.recordSeconds + KEEP_LONGER_SECONDS, limit: 100 };
    return {
      jobId,
      attempts,
      backoff: { type: 'schedule' },
      removeOnComplete: keep,
      removeOnFail: keep,
      stackTraceLimit: 0,
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close()));
    await Promise.all([this.#webhooks.close(), this.#voices.close()]);
  }
}
