/** The tries of a follow-up: a list of ours, since BullMQ keeps the last one only. */

import { DeliveryAttempt } from 'soundpost-contract/deliveries';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { z } from 'zod';
import type { QueueName } from '../jobs/names.ts';

const LoggedAttempt = DeliveryAttempt.extend({
  /** When the next try was due; absent when there was none. */
  nextAtMs: z.number().optional(),
});
export type LoggedAttempt = z.infer<typeof LoggedAttempt>;

export class AttemptLog {
  readonly #redis: Redis;
  readonly #queue: QueueName;

  constructor(redis: Redis, queue: QueueName) {
    this.#redis = redis;
    this.#queue = queue;
  }

  /** Ids of webhooks came first; those of other queues may be the same. */
  #key(id: string): string {
    const isOfWebhook = this.#queue === 'webhook' || this.#queue === 'gateway-webhook';
    return isOfWebhook ? ownKey('attempts', id) : ownKey('attempts', this.#queue, id);
  }

  async add(id: string, attempt: LoggedAttempt, keepSeconds: number): Promise<void> {
    const key = this.#key(id);
    await this.#redis.multi().rpush(key, JSON.stringify(attempt)).expire(key, Math.ceil(keepSeconds)).exec();
  }

  /** Oldest first. */
  async read(id: string): Promise<LoggedAttempt[]> {
    const texts = await this.#redis.lrange(this.#key(id), 0, -1);
    return texts.map((text) => LoggedAttempt.parse(JSON.parse(text)));
  }

  count(id: string): Promise<number> {
    return this.#redis.llen(this.#key(id));
  }
}
