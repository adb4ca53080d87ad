/**
 * Repeating a request with the same `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header; decisions A6): the first answer again,
 * a refusal for another request, and for one whose first is still running. A running request holds a lease that it renews; one
 * whose process died loses it, and the next repetition takes over with the same seed.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Redis } from '../redis/connection.ts';
import { loadScript } from '../redis/script.ts';

/** What differs between servers. */
export interface IdempotencyPolicy {
  /** Whether nothing was done, so that the key is free again, also for another request. Otherwise it stays bound to its request. */
  readonly isUndone: (error: unknown) => boolean;
  /** What a caller is told whose key was used for another request, or whose first request has not ended. */
  readonly refusal: (reason: 'mismatch' | 'in-progress', retryAfterSeconds: number) => Error;
}

interface KeyedRequest {
  /** Key in Redis for the record of this Idempotency-Key. */
  readonly record: string;
  /** Equal for equal requests. */
  readonly fingerprint: string;
}

const KEEP_MS = 24 * 60 * 60 * 1000;
/** How long a request may be silent before another one may take it over: its process has died. */
const LEASE_MS = 6000;
const RENEW_MS = 2000;
const RETRY_AFTER_SECONDS = 2;

const begin = loadScript(new URL('./lua/idempotency-begin.lua', import.meta.url));
const renew = loadScript(new URL('./lua/idempotency-renew.lua', import.meta.url));
const finish = loadScript(new URL('./lua/idempotency-finish.lua', import.meta.url));
const abandon = loadScript(new URL('./lua/idempotency-abandon.lua', import.meta.url));

const BeginReply = z.union([
  z.tuple([z.enum(['begun', 'replay']), z.string()]),
  z.tuple([z.enum(['mismatch', 'in-progress'])]),
]);

/**
 * Does the work once for a key; its answer is kept for 24 h, as JSON. Throws the policy's refusals, and what the work throws.
 * @param work gets a seed to make ids from, the same one when it is repeated without having been answered
 */
export async function once<Answer>(
  redis: Redis,
  { record, fingerprint }: KeyedRequest,
  { isUndone, refusal }: IdempotencyPolicy,
  work: (seed: string) => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly replayed: boolean }> {
  const owner = randomUUID();
  const fresh = randomBytes(16).toString('hex');
  const [outcome, text = ''] = BeginReply.parse(
    await begin.run(redis, [record], [fingerprint, fresh, owner, LEASE_MS, KEEP_MS]),
  );
  if (outcome === 'replay') {
    return { answer: JSON.parse(text) as Answer, replayed: true };
  }
  if (outcome !== 'begun') {
    throw refusal(outcome, RETRY_AFTER_SECONDS);
  }
  const renewing = setInterval(() => {
    // One missed renewal is no loss, and a lost lease only allows another try with the same seed.
    renew.run(redis, [record], [owner, LEASE_MS]).catch(() => undefined);
  }, RENEW_MS);
  try {
    const answer = await work(text);
    clearInterval(renewing);
    await finish.run(redis, [record], [owner, JSON.stringify(answer)]);
    return { answer, replayed: false };
  } catch (error) {
    clearInterval(renewing);
    if (isUndone(error)) {
      // While Redis is away the lease ends by itself, and the caller is to hear of the first error.
      await abandon.run(redis, [record], [owner]).catch(() => undefined);
    } else {
      // The same request may be begun again at once. Not waited for: what failed may be Redis, and the caller is to be answered in time.
      renew.run(redis, [record], [owner, -LEASE_MS]).catch(() => undefined);
    }
    throw error;
  }
}

/** Callers choose what they send, so it is hashed before it becomes part of a key of ours. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
