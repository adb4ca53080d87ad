/**
 * Idempotent requests (draft-ietf-httpapi-idempotency-key-header; decisions A6). A repetition gets
 * the first answer; a different request, or one whose first still runs, is refused. A running
 * request renews a lease; if its process dies, the next repetition takes over with the same seed.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { within } from 'soundpost-base/deadline';
import { z } from 'zod';
import type { Redis } from '../redis/connection.ts';
import { loadScript } from '../redis/script.ts';
import { untilTaken } from '../redis/until-taken.ts';

/** The parts that differ between servers. */
export interface IdempotencyPolicy {
  /** Whether nothing was done, so that the key is free again, also for another request. */
  readonly isUndone: (error: unknown) => boolean;
  /** The error if the key belongs to another request, or its first request has not ended. */
  readonly refusal: (reason: 'mismatch' | 'in-progress', retryAfterSeconds: number) => Error;
}

interface KeyedRequest {
  /** Redis key of this Idempotency-Key's record. */
  readonly record: string;
  /** Equal for equal requests. */
  readonly fingerprint: string;
}

/** An answer for the script that ends the work (lua/idempotency-answer.lua). Plain data. */
export interface KeptAnswer extends KeyedRequest {
  readonly seed: string;
  /** JSON. */
  readonly answer: string;
}

/** A request that is being done. */
export interface RequestTurn<Answer> {
  /** For ids: the same one if the request is repeated unanswered. */
  readonly seed: string;
  /** Call it if the work's own last script stores the answer, so that both happen or neither. */
  keep(answer: Answer): KeptAnswer;
}

export const KEEP_MS = 24 * 60 * 60 * 1000;
/** A request that is silent for longer may be taken over: its process has died. */
const LEASE_MS = 6000;
const RENEW_MS = 2000;
const RETRY_AFTER_SECONDS = 2;
/** An answer waits this long for its record. */
const FINISHED_WITHIN_MS = 500;

const begin = loadScript(new URL('./lua/idempotency-begin.lua', import.meta.url));
const renew = loadScript(new URL('./lua/idempotency-renew.lua', import.meta.url));
const finish = loadScript(new URL('./lua/idempotency-finish.lua', import.meta.url));
const abandon = loadScript(new URL('./lua/idempotency-abandon.lua', import.meta.url));

const BeginReply = z.union([
  z.tuple([z.enum(['begun', 'replay']), z.string()]),
  z.tuple([z.enum(['mismatch', 'in-progress'])]),
]);

/**
 * Does the work once per key; keeps its answer for 24 h as JSON. Once the work is done, its answer
 * no longer depends on Redis. Throws the policy's refusals and the work's errors.
 */
export async function once<Answer>(
  redis: Redis,
  { record, fingerprint }: KeyedRequest,
  { isUndone, refusal }: IdempotencyPolicy,
  work: (turn: RequestTurn<Answer>) => Promise<Answer>,
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
  const seed = text;
  let isKept = false;
  const keep = (answer: Answer): KeptAnswer => {
    isKept = true;
    return { record, fingerprint, seed, answer: JSON.stringify(answer) };
  };
  const renewing = setInterval(() => {
    // A lost lease only allows another attempt with the same seed.
    renew.run(redis, [record], [owner, LEASE_MS]).catch(() => undefined);
  }, RENEW_MS);
  try {
    const answer = await work({ seed, keep });
    if (!isKept) {
      const args = [fingerprint, seed, JSON.stringify(answer)];
      const finishing = untilTaken(() => finish.run(redis, [record], args));
      await within(FINISHED_WITHIN_MS, () => finishing).catch(() => undefined);
    }
    return { answer, replayed: false };
  } catch (error) {
    if (isUndone(error)) {
      // If Redis is unavailable, the lease expires by itself, and the caller gets the first error.
      await abandon.run(redis, [record], [owner]).catch(() => undefined);
    } else {
      // Lets the same request begin again at once. Not awaited: Redis may be what failed.
      renew.run(redis, [record], [owner, -LEASE_MS]).catch(() => undefined);
    }
    throw error;
  } finally {
    clearInterval(renewing);
  }
}

/** Hashes untrusted text before it becomes part of a Redis key. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
