/**
 * Repeating a request with the same `Idempotency-Key` (IETF draft-ietf-httpapi-idempotency-key-header; decisions A6):
 * the first answer again, 422 for another body, 409 while the first one runs. A running request holds a lease that
 * it renews; one whose process died loses it, and the next repetition takes over.
 */
import { createHash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { GatewayError } from '../contract/gateway-errors.ts';
import type { Redis } from '../queue/redis.ts';
import { RedisScript } from '../queue/script.ts';
import { gatewayKey } from './redis-keys.ts';

const KEEP_SECONDS = 24 * 60 * 60;
const LEASE_MS = 6000;
const RENEW_MS = 2000;

const beginScript = new RedisScript(`
local record, lease = KEYS[1], KEYS[2]
local fingerprint, owner, leaseMs, keep = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local known = redis.call('HGET', record, 'fingerprint')
if known and known ~= fingerprint then return {'mismatch'} end
local answer = redis.call('HGET', record, 'answer')
if answer then return {'replay', answer} end
if not redis.call('SET', lease, owner, 'NX', 'PX', leaseMs) then return {'running'} end
if not known then
  redis.call('HSET', record, 'fingerprint', fingerprint)
  redis.call('EXPIRE', record, keep)
end
return {'begin'}
`);

const renewScript = new RedisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
`);

const releaseScript = new RedisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`);

const BeginReply = z.union([
  z.tuple([z.literal('replay'), z.string()]),
  z.tuple([z.enum(['begin', 'mismatch', 'running'])]),
]);

export interface KeyedRequest {
  /** Keys of different scopes do not meet. */
  readonly scope: string;
  /** As the caller sent it. */
  readonly key: string;
  /** Equal for equal bodies. */
  readonly fingerprint: string;
}

export class Idempotency {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Runs the operation once for a key. Answers of success are kept for 24 h. After a failure the key stays bound to
   * its body and the next repetition runs the operation again.
   */
  async once<T>(request: KeyedRequest, run: () => Promise<T>): Promise<{ answer: T; replayed: boolean }> {
    // Callers choose the key, so it is hashed before it becomes part of one of ours.
    const hashed = createHash('sha256').update(request.key).digest('hex');
    const record = gatewayKey('idempotency', request.scope, hashed);
    const lease = `${record}:lease`;
    const owner = randomUUID();
    const [outcome, kept] = BeginReply.parse(
      await beginScript.run(
        this.#redis,
        [record, lease],
        [request.fingerprint, owner, LEASE_MS, KEEP_SECONDS],
      ),
    );
    if (outcome === 'mismatch') {
      throw new GatewayError('idempotency_mismatch', 'Idempotency-Key: was used before with another body');
    }
    if (outcome === 'running') {
      throw new GatewayError(
        'idempotency_in_progress',
        'Idempotency-Key: the first request with it is still running',
        { retryAfterSeconds: 2 },
      );
    }
    if (outcome === 'replay') {
      return { answer: JSON.parse(kept) as T, replayed: true };
    }
    const renewal = setInterval(() => {
      renewScript.run(this.#redis, [lease], [owner, LEASE_MS]).catch(() => undefined);
    }, RENEW_MS);
    try {
      const answer = await run();
      await this.#redis.hset(record, 'answer', JSON.stringify(answer));
      return { answer, replayed: false };
    } finally {
      clearInterval(renewal);
      await releaseScript.run(this.#redis, [lease], [owner]).catch(() => undefined);
    }
  }
}
