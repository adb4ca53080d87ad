/**
 * A Lua script that writes only while the writer has the gateway's lease: checked in the script itself, so that a process that
 * was paused anywhere before it can do no harm after it.
 */
import type { Redis } from 'soundpost-kit/redis/connection';
import { RedisScript, readScript } from 'soundpost-kit/redis/script';
import { gatewayLease, type Lease, standby } from './lease.ts';

export const NOT_HOLDER = 'NOTHOLDER';

const FENCE = readScript(new URL('./lua/fence.lua', import.meta.url));

export class FencedScript {
  readonly #script: RedisScript;

  /** @param source with KEYS and ARGV of its own; `own` is how many arguments those are */
  constructor(source: string) {
    this.#script = new RedisScript(`${FENCE}${source}`);
  }

  /** Throws standby when another process has the lease, and marks ours as lost. */
  async run(
    redis: Redis,
    lease: Lease,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    lease.assert();
    try {
      return await this.#script.run(redis, [...keys, gatewayLease.key], [...args, lease.holder]);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith(NOT_HOLDER)) {
        lease.lose();
        throw standby();
      }
      throw error;
    }
  }
}

/** @param file of a script that counts its KEYS and ARGV as if there were no fence */
export function loadFencedScript(file: URL): FencedScript {
  return new FencedScript(readScript(file));
}
