/**
 * Admits a request: checks its key, wrong keys from its address, and the key's rate. One script, so
 * a request asks Redis once; the record it reads can come along.
 */

import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { countWrongKey, type RateState, rateKey } from 'soundpost-kit/redis/rate';
import { unlessUnreadable } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { hashOf, recordKey } from './bullmq-internals.ts';
import { type ApiKey, apiKeyKey, type ClaimedKey, readPublicFields } from './tenants/api-keys.ts';

interface AdmissionRequest {
  /** The key that is claimed; undefined if malformed. */
  readonly claim: ClaimedKey | undefined;
  readonly address: string;
  readonly policy: 'read' | 'submit';
  /** Requests per minute for the key. */
  readonly limit: number;
  /** Units that the request uses; 0 only checks. */
  readonly cost: number;
  /** A job whose record is read as well. */
  readonly jobId?: string | undefined;
}

type Admission =
  /** After too many malformed, unknown, wrong or revoked keys from the address. */
  | { readonly outcome: 'blocked'; readonly retryAfterSeconds: number }
  /** Malformed, unknown, wrong, revoked and unreadable keys alike. */
  | { readonly outcome: 'no-key' }
  | {
      readonly outcome: 'known';
      readonly key: ApiKey;
      /** False when the rate is used up. */
      readonly allowed: boolean;
      readonly rate: RateState;
      /** The requested job, for {@link readJobRecord}; empty if there is none. */
      readonly record: Readonly<Record<string, string>>;
    };

const admit = loadScript(new URL('./lua/admit.lua', import.meta.url));

type Answer =
  | ['blocked', number]
  | ['no-key']
  | ['known', 0 | 1, number, number, string, string, string, string, string, 0 | 1, (string | null)[]];

export async function admitRequest(
  redis: Redis,
  { claim, address, policy, limit, cost, jobId }: AdmissionRequest,
): Promise<Admission> {
  const id = claim?.id ?? '';
  const keys = [rateKey('failed-key', address), apiKeyKey(id), rateKey(policy, id)];
  if (jobId !== undefined) {
    keys.push(recordKey('extract', jobId));
  }
  const answer = (await admit.run(redis, keys, [claim?.mac ?? '', redisNow(), limit, cost])) as Answer;
  switch (answer[0]) {
    case 'blocked':
      return { outcome: 'blocked', retryAfterSeconds: Math.ceil(answer[1] / 1000) };
    case 'no-key':
      return { outcome: 'no-key' };
    case 'known': {
      const [, allowed, remaining, resetMs, name, scopes, instances, createdAtMs, paused, isCurrent, fields] =
        answer;
      const pausedAtMs = paused === '' ? undefined : paused;
      const known = await unlessUnreadable(
        () => readPublicFields({ name, scopes, instances, createdAtMs, pausedAtMs }),
        () => undefined,
      );
      if (known === undefined) return { outcome: 'no-key' };
      return {
        outcome: 'known',
        key: {
          id,
          ...known,
          ...(isCurrent === 1 ? {} : { isReplaced: true }),
        },
        allowed: allowed === 1,
        rate: { limit, remaining: Math.max(0, remaining), resetSeconds: Math.ceil(resetMs / 1000) },
        record: hashOf(fields),
      };
    }
  }
}

/**
 * Counts a wrong password, token or signature as a wrong API key of its address.
 * @returns seconds until another is answered 401 again; undefined if this one is
 */
export function countWrongCredential(redis: Redis, address: string): Promise<number | undefined> {
  return countWrongKey(redis, rateKey('failed-key', address));
}
