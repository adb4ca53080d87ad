/**
 * A Lua script that writes for an instance only while the writer has the instance: checked in the script itself, so that a
 * process that was paused anywhere before it can do no harm after it.
 */
import type { Redis } from '../../queue/redis.ts';
import { RedisScript } from '../../queue/script.ts';
import { type Hold, moved } from './hold.ts';
import { NOW, OWNERS, REPLICAS } from './ownership.ts';

const REFUSED = 'NOTOWNER';

/** Behind the script's own, so that it counts its own from 1; `own` is how many arguments those are. */
const PRELUDE = `${NOW}
local own = #ARGV - 3
do
  local owners, replicas = KEYS[#KEYS - 1], KEYS[#KEYS]
  local what, holder, replica = ARGV[own + 1], ARGV[own + 2], ARGV[own + 3]
  local expires = redis.call('ZSCORE', replicas, replica)
  if redis.call('HGET', owners, what) ~= holder or not expires or tonumber(expires) <= now() then
    return redis.error_reply('${REFUSED} another process has the instance')
  end
end
`;

export class FencedScript {
  readonly #script: RedisScript;

  /** @param source with KEYS and ARGV of its own; more of both follow them: `own` says how many arguments come before */
  constructor(source: string) {
    this.#script = new RedisScript(`${PRELUDE}${source}`);
  }

  /** Throws service_unavailable when the instance is another's, and marks it as lost. */
  async run(
    redis: Redis,
    hold: Hold,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    hold.assert();
    try {
      return await this.#script.run(
        redis,
        [...keys, OWNERS, REPLICAS],
        [...args, hold.what, hold.holder, hold.replicaId],
      );
    } catch (error) {
      if (error instanceof Error && error.message.startsWith(REFUSED)) {
        hold.lose();
        throw moved();
      }
      throw error;
    }
  }
}
