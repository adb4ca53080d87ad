/** The webhooks of jobs: announced by workers, shown and replayed by the API. */
import type { Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Delivery } from 'soundpost-contract/answers';
import type { WebhookState } from 'soundpost-contract/job';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { webhookId } from '../jobs/names.ts';
import { WebhookPayload } from '../jobs/payloads.ts';
import { countAttempts, readAttempts } from './attempt-log.ts';
import { deliveryProgress } from './delivery-progress.ts';
import { DeliveryQueue } from './delivery-queue.ts';

interface JobWebhooksOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** How often a webhook is tried. */
  readonly tries: number;
  /** How long the record of a job is kept, seconds. */
  readonly recordSeconds: number;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/** A record that vanished while its job could still be asked for would announce a second time. */
const KEEP_LONGER_SECONDS = 24 * 60 * 60;
/** Records that BullMQ removes at a time. */
const REMOVE_LIMIT = 100;

/** A set: the ids of the job's deliveries. */
const indexKey = (jobId: string): string => ownKey('deliveries', jobId);

export class JobWebhooks {
  readonly queue: DeliveryQueue;
  readonly #redis: Redis;
  readonly #tries: number;
  readonly #keepSeconds: number;

  constructor({ redis, tries, recordSeconds, logger, telemetry }: JobWebhooksOptions) {
    this.#redis = redis;
    this.#tries = tries;
    this.#keepSeconds = Math.ceil(recordSeconds + KEEP_LONGER_SECONDS);
    const keep = { age: this.#keepSeconds, limit: REMOVE_LIMIT };
    this.queue = new DeliveryQueue({
      name: 'webhook',
      redis,
      keep: { delivered: keep, failed: keep },
      logger,
      telemetry,
    });
  }

  async add(payload: WebhookPayload): Promise<void> {
    const { jobId, deliveryId, event } = payload;
    const key = indexKey(jobId);
    await this.#redis.multi().sadd(key, deliveryId).expire(key, this.#keepSeconds).exec();
    await this.queue.add(deliveryId, event, payload, this.#tries);
  }

  /** Answers false when the job has no such delivery. */
  async replay(jobId: string, deliveryId: string): Promise<boolean> {
    const isOwn = (await this.#redis.sismember(indexKey(jobId), deliveryId)) === 1;
    return isOwn && (await this.queue.replay(deliveryId));
  }

  /** Sends again what failed at this time or later; answers how many. */
  async resend(tenant: string, sinceMs: number): Promise<number> {
    const ids: string[] = [];
    // Read to the end first: what is sent again leaves the list.
    for await (const { id, data } of this.queue.failedSince(sinceMs)) {
      if (WebhookPayload.parse(data).tenant === tenant) ids.push(id);
    }
    let resent = 0;
    // Oldest first, as they would have come.
    for (const id of ids.reverse()) {
      if (await this.queue.replay(id)) resent += 1;
    }
    return resent;
  }

  /** Oldest first. @param bodyOf what is posted */
  async list(jobId: string, bodyOf: (payload: WebhookPayload) => Delivery['body']): Promise<Delivery[]> {
    const ids = await this.#redis.smembers(indexKey(jobId));
    const found = await Promise.all(
      ids.map(async (deliveryId) => {
        const [stored, attempts] = await Promise.all([
          this.queue.find(deliveryId),
          readAttempts(this.#redis, deliveryId),
        ]);
        if (stored === undefined) return undefined;
        const payload = WebhookPayload.parse(stored.data);
        const hostFailsSinceMs = await this.queue.hostFailsSinceMs(payload.url);
        return { stored, payload, progress: deliveryProgress(stored, attempts, hostFailsSinceMs) };
      }),
    );
    return found
      .filter((one) => one !== undefined)
      .sort((one, other) => one.stored.data.eventTimeMs - other.stored.data.eventTimeMs)
      .map(({ payload, progress }) => ({ ...progress, event: payload.event, body: bodyOf(payload) }));
  }

  /** How far the announcement of the job's end is. */
  async stateOf(jobId: string): Promise<WebhookState> {
    const deliveryId = webhookId(jobId);
    const [stored, attempts] = await Promise.all([
      this.queue.find(deliveryId),
      countAttempts(this.#redis, deliveryId),
    ]);
    const { status = 'pending', lastError = null } = stored ?? {};
    const shown = { pending: lastError, delivered: null, failed: `WEBHOOK_FAILED: ${lastError}` };
    return { status, attempts, lastError: shown[status] };
  }

  close(): Promise<void> {
    return this.queue.close();
  }
}
