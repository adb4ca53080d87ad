/** The producers' side of what is told to others about a job: its webhook and its voice message. */
import { Queue, type Telemetry } from 'bullmq';
import type { VoiceMessageRequest } from '../contract/job-request.ts';
import type { Logger } from '../logger.ts';
import { currentDeliveryJob, deliveriesKey } from './delivery-index.ts';
import { recordFields } from './job-record.ts';
import { jobKey, queueNames } from './names.ts';
import { type VoicePayload, WebhookPayload } from './payloads.ts';
import { KEY_PREFIX, type Redis } from './redis.ts';
import { Renewed } from './renewed.ts';

export interface AnnouncementQueueOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** How often a webhook is tried. */
  readonly webhookTries: number;
  /** How long the record of a finished announcement is kept, seconds. */
  readonly recordSeconds: number;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/**
 * Ten tries over an hour (decisions C), seconds after the first. The second comes when the lease of a gateway that died has run
 * out (6 s, src/gateway/idempotency.ts): earlier it would hear that the first one is still running.
 */
export const VOICE_SCHEDULE_SECONDS = [0, 8, 20, 60, 180, 420, 900, 1500, 2400, 3600] as const;

/** A record that vanished while its job could still be asked for would announce a second time. */
const KEEP_LONGER_SECONDS = 24 * 60 * 60;

export class AnnouncementQueue {
  readonly #options: AnnouncementQueueOptions;
  readonly #webhooks: Renewed<Queue>;
  readonly #voices: Renewed<Queue>;

  constructor(options: AnnouncementQueueOptions) {
    this.#options = options;
    this.#webhooks = this.#queue(queueNames.webhook);
    this.#voices = this.#queue(queueNames.voice);
  }

  #queue(name: string): Renewed<Queue> {
    const { redis, telemetry, logger } = this.#options;
    const warn = (error: Error): void => logger.warn({ error: error.message }, `${name} queue`);
    const shared = { connection: redis, prefix: KEY_PREFIX, ...(telemetry && { telemetry }) };
    return new Renewed(() => new Queue(name, shared).on('error', warn));
  }

  /** Adds a notification; its delivery id makes it one, however often it is added. */
  async addWebhook(payload: WebhookPayload): Promise<void> {
    await this.#index(payload.jobId, payload.deliveryId, payload.deliveryId);
    await (await this.#webhooks.get()).add(
      payload.event,
      payload,
      this.#jobOptions(payload.deliveryId, this.#options.webhookTries),
    );
  }

  /**
   * Sends a notification that was delivered or given up once more, at once and with the whole schedule, under the same
   * webhook-id. Answers false when there is no such delivery.
   */
  async replayWebhook(jobId: string, deliveryId: string): Promise<boolean> {
    const { redis, webhookTries } = this.#options;
    const current = await currentDeliveryJob(redis, jobId, deliveryId);
    const data = await redis.hget(jobKey('webhook', current), 'data');
    const payload = data === null ? undefined : WebhookPayload.parse(JSON.parse(data));
    if (payload === undefined || payload.jobId !== jobId) {
      return false;
    }
    const nowMs = Date.now();
    const replay = `${deliveryId}-replay-${nowMs}`;
    await this.#index(jobId, deliveryId, replay);
    await (await this.#webhooks.get()).add(
      payload.event,
      { ...payload, scheduleFromMs: nowMs },
      this.#jobOptions(replay, webhookTries),
    );
    return true;
  }

  /** Sends the result of a job into a chat. */
  async addVoice(tenant: string, jobId: string, sendId: string, request: VoiceMessageRequest): Promise<void> {
    const payload: VoicePayload = { version: 1, tenant, jobId, sendId, request };
    await (await this.#voices.get()).add(
      'send',
      payload,
      this.#jobOptions(sendId, VOICE_SCHEDULE_SECONDS.length),
    );
  }

  /** Sends a finished result once more, or for the first time; the job then tells of this sending. */
  async resendVoice(
    tenant: string,
    jobId: string,
    sendId: string,
    request: VoiceMessageRequest,
  ): Promise<void> {
    await this.#options.redis.hset(jobKey('extract', jobId), recordFields.voiceSend, sendId);
    await this.addVoice(tenant, jobId, sendId, request);
  }

  async #index(jobId: string, deliveryId: string, current: string): Promise<void> {
    const key = deliveriesKey(jobId);
    const keepSeconds = this.#options.recordSeconds + KEEP_LONGER_SECONDS;
    await this.#options.redis
      .multi()
      .hset(key, deliveryId, current)
      .expire(key, Math.ceil(keepSeconds))
      .exec();
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
    await Promise.all([this.#webhooks.close(), this.#voices.close()]);
  }
}
