/**
 * A Lua script that writes only while its caller holds the gateway's lease. The script checks this
 * itself, so that a process that was paused before the call cannot write after losing the lease.
 */
import type { Redis } from 'soundpost-kit/redis/connection';
import { RedisScript, readScript } from 'soundpost-kit/redis/script';
import { gatewayLease, type Lease, standby } from './lease.ts';

export const NOT_HOLDER = 'NOTHOLDER';

const FENCE = readScript(new URL('./lua/fence.lua', import.meta.url));

export class FencedScript {
  readonly #script: RedisScript;

  /** @param source with its own KEYS and ARGV; `own` is the number of its ARGV */
  constructor(source: string) {
    this.#script = new RedisScript(`${FENCE}${source}`);
  }

  /** Throws standby if another process has the lease, and marks this lease as lost. */
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

/** @param file of a script that counts its own KEYS and ARGV, ignoring the fence's */
export function loadFencedScript(file: URL): FencedScript {
  return new FencedScript(readScript(file));
}
