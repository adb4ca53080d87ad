/** A Lua script that is sent once and then called by its hash. */
import { createHash } from 'node:crypto';
import type { Redis } from './connection.ts';

export class RedisScript {
  readonly #source: string;
  readonly #sha: string;

  constructor(source: string) {
    this.#source = source;
    this.#sha = createHash('sha1').update(source).digest('hex');
  }

  async run(redis: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha, keys.length, ...keys, ...args);
    } catch (error) {
      // A restarted or flushed Redis has forgotten the script.
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) {
        return redis.eval(this.#source, keys.length, ...keys, ...args);
      }
      throw error;
    }
  }
}
