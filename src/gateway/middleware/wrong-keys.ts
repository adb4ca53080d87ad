/** Wrong keys, tokens, codes and sessions by address: whoever brings too many is not even listened to for a while. */
import type { Request } from 'express';
import { GatewayError } from '../../contract/gateway-errors.ts';
import type { Redis } from '../../redis/connection.ts';
import { RedisScript } from '../../redis/script.ts';
import { gatewayKey } from '../redis-keys.ts';
import { noteRefusal } from './audit.ts';

/** As many as the API allows. */
const WRONG_KEYS_PER_MINUTE = 60;
const WINDOW_SECONDS = 60;

const countScript = new RedisScript(`
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return count
`);

export class WrongKeys {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Runs what looks at a key, and counts when it knows nobody. Throws rate_limited, without looking, once the address
   * of the request has brought too many: also for a right key, or guessing would go on.
   */
  async guard<T>(request: Request, look: () => Promise<T | undefined>): Promise<T | undefined> {
    const counter = gatewayKey('wrong-keys', request.ip ?? '');
    if (Number((await this.#redis.get(counter)) ?? 0) >= WRONG_KEYS_PER_MINUTE) {
      throw new GatewayError('rate_limited', 'too many wrong keys came from this address', {
        retryAfterSeconds: Math.max(1, await this.#redis.ttl(counter)),
      });
    }
    const found = await look();
    if (found === undefined) {
      noteRefusal(request);
      await countScript.run(this.#redis, [counter], [WINDOW_SECONDS]);
    }
    return found;
  }
}
