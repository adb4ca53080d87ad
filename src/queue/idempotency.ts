/**
 * Idempotency keys (decisions A6, draft-ietf-httpapi-idempotency-key-header): the first answer again for the same request, and the
 * same job ids after a crash in the middle, so that one submission is one job however often it is sent.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { ownKey } from './names.ts';
import type { Redis } from './redis.ts';
import { RedisScript } from './script.ts';

export interface KeptAnswer {
  readonly httpStatus: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export type IdempotencyOutcome =
  /** Ours to do; `seed` is the same whenever this key is begun again before it was answered. */
  | { readonly outcome: 'begun'; readonly run: IdempotentRun }
  | { readonly outcome: 'replay'; readonly answer: KeptAnswer }
  | { readonly outcome: 'mismatch' | 'in-progress' };

export interface IdempotentRun {
  readonly seed: string;
  /** Keeps the answer for those who ask again. */
  finish(answer: KeptAnswer): Promise<void>;
  /** Nothing was done: the key may be used again, also for another body. */
  abandon(): Promise<void>;
  /** Nobody knows what was done: the same request may be begun again at once, with the same seed. */
  interrupt(): Promise<void>;
}

const KEEP_MS = 24 * 60 * 60 * 1000;
/** How long a request may be silent before another one may take it over: its process has died. */
const LEASE_MS = 10_000;
const RENEW_MS = 3000;

const Kept = z.object({ httpStatus: z.int(), headers: z.record(z.string(), z.string()), body: z.unknown() });

const begin = new RedisScript(`
local key = KEYS[1]
local fingerprint, seed, owner, now, lease, keep = unpack(ARGV)
local stored = redis.call('HMGET', key, 'fingerprint', 'seed', 'until', 'answer')
if stored[1] and stored[1] ~= fingerprint then return {'mismatch'} end
if stored[4] then return {'replay', stored[4]} end
if stored[3] and tonumber(stored[3]) > tonumber(now) then return {'in-progress'} end
seed = stored[2] or seed
redis.call('HSET', key, 'fingerprint', fingerprint, 'seed', seed, 'owner', owner, 'until', now + lease)
if not stored[1] then redis.call('PEXPIRE', key, keep) end
return {'begun', seed}
`);

// Each of these changes the record only while it is still the caller's.
const renew = new RedisScript(`
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('HSET', KEYS[1], 'until', ARGV[2]) end
`);
const finish = new RedisScript(`
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('HSET', KEYS[1], 'answer', ARGV[2]) end
`);
const abandon = new RedisScript(`
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('DEL', KEYS[1]) end
`);

/** @param request what has to be the same for the answer to be the same: route and body */
export async function beginIdempotent(
  redis: Redis,
  tenant: string,
  idempotencyKey: string,
  request: string,
): Promise<IdempotencyOutcome> {
  const key = ownKey('idempotency', tenant, hashOf(idempotencyKey));
  const owner = randomUUID();
  const answer = (await begin.run(
    redis,
    [key],
    [hashOf(request), randomBytes(16).toString('hex'), owner, Date.now(), LEASE_MS, KEEP_MS],
  )) as [IdempotencyOutcome['outcome'], string?];
  const [outcome, text = ''] = answer;
  if (outcome === 'replay') {
    return { outcome, answer: Kept.parse(JSON.parse(text)) };
  }
  if (outcome !== 'begun') {
    return { outcome };
  }
  const renewing = setInterval(() => {
    // One missed renewal is no loss, and a lost lease only allows another try with the same seed.
    renew.run(redis, [key], [owner, Date.now() + LEASE_MS]).catch(() => undefined);
  }, RENEW_MS);
  return {
    outcome,
    run: {
      seed: text,
      async finish(kept) {
        clearInterval(renewing);
        await finish.run(redis, [key], [owner, JSON.stringify(kept)]);
      },
      async abandon() {
        clearInterval(renewing);
        await abandon.run(redis, [key], [owner]);
      },
      async interrupt() {
        clearInterval(renewing);
        await renew.run(redis, [key], [owner, 0]);
      },
    },
  };
}

/** The n-th id of a submission: from the seed of its idempotency key, or random. */
export function idFor(prefix: 'job' | 'batch', seed: string | undefined, index: number): string {
  const hex = seed === undefined ? randomHex() : hashOf(`${seed}:${prefix}:${index}`).slice(0, 16);
  return `${prefix}_${hex}`;
}

/** 64 bits: all digits of a UUID that are random (RFC 9562, 5.4). It has a store of them, a tenth of the price of asking each time. */
function randomHex(): string {
  const uuid = randomUUID();
  return uuid.slice(0, 8) + uuid.slice(-8);
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
