/** The network's history of accounts and groups, for instances that request it in full. */

import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { Redis } from 'soundpost-kit/redis/connection';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';

/** Messages kept for each account or group. */
const LONGEST_ARCHIVE = 1000;
const archiveKey = (digits: string): string => gatewayKey('loopback', 'archive', digits);

const keepScript = loadScript(new URL('./lua/archive-append.lua', import.meta.url));

export class Archive {
  readonly #redis: Redis;
  readonly #keepSeconds: number;

  /** @param keepSeconds not longer than the messages' media are kept */
  constructor(redis: Redis, keepSeconds: number) {
    this.#redis = redis;
    this.#keepSeconds = Math.ceil(keepSeconds);
  }

  /** @param owners digits of the accounts, or of the group */
  async keep(owners: readonly string[], message: unknown): Promise<void> {
    await keepScript.run(this.#redis, owners.map(archiveKey), [
      JSON.stringify(message),
      LONGEST_ARCHIVE,
      this.#keepSeconds,
    ]);
  }

  /** Oldest first. */
  async of<Schema extends z.ZodType>(digits: string, schema: Schema): Promise<z.output<Schema>[]> {
    const stored = await this.#redis.lrange(archiveKey(digits), 0, -1);
    return z.array(schema).parse(stored.map((text) => JSON.parse(text)));
  }

  async forget(digits: readonly string[]): Promise<void> {
    await this.#redis.unlink(...digits.map(archiveKey));
  }
}
