/** Wrong keys, tokens, codes and sessions by address: whoever brings too many is refused for a while. */
import type { Request } from 'express';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Redis } from 'soundpost-kit/redis/connection';
import { countWrongKey } from 'soundpost-kit/redis/rate';
import { noteRefusal } from './audit.ts';

export class WrongKeys {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Runs what looks at a key, and counts when it knows nobody. Throws rate_limited when the address of the request has brought too many
   * such keys; a right one is answered whatever others from its address tried.
   */
  async guard<T>(request: Request, look: () => Promise<T | undefined>): Promise<T | undefined> {
    const found = await look();
    if (found !== undefined) return found;
    const retryAfterSeconds = await countWrongKey(this.#redis, gatewayKey('wrong-keys', request.ip ?? ''));
    if (retryAfterSeconds !== undefined) {
      throw new GatewayError('rate_limited', 'too many wrong keys came from this address', {
        retryAfterSeconds,
      });
    }
    noteRefusal(request);
    return undefined;
  }
}
