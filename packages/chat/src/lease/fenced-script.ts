/**
 * A Lua script that writes only while the writer has the gateway's lease: checked in the script itself, so that a process that
 * was paused anywhere before it can do no harm after it.
 */
import type { Redis } from 'soundpost-kit/redis/connection';
import { RedisScript } from 'soundpost-kit/redis/script';
import { type Lease, standby } from './lease.ts';
import { LEASE } from './lease-record.ts';

const REFUSED = 'NOTHOLDER';

/** The lease's key and holder come behind the script's own, so that it counts its own from 1. */
const PRELUDE = `
local own = #ARGV - 1
if redis.call('GET', KEYS[#KEYS]) ~= ARGV[#ARGV] then
  return redis.error_reply('${REFUSED} another process has the lease')
end
`;

export class FencedScript {
  readonly #script: RedisScript;

  /** @param source with KEYS and ARGV of its own; `own` is how many arguments those are */
  constructor(source: string) {
    this.#script = new RedisScript(`${PRELUDE}${source}`);
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
      return await this.#script.run(redis, [...keys, LEASE], [...args, lease.holder]);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith(REFUSED)) {
        lease.lose();
        throw standby();
      }
      throw error;
    }
  }
}
