/** Rate limits: a tenant's remaining requests, and wrong keys. */

import type { Redis } from './connection.ts';
import { ownKey } from './keys.ts';
import { loadScript } from './script.ts';

export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the next window. */
  readonly resetSeconds: number;
}

export const RATE_WINDOW_SECONDS = 60;

/** Per address; more are answered 429 (decisions A6). A valid key always works. */
export const WRONG_KEYS_PER_MINUTE = 30;

const take = loadScript(new URL('./lua/rate-take.lua', import.meta.url));

const countWrong = loadScript(new URL('./lua/wrong-key-count.lua', import.meta.url));

/**
 * Counts a wrong key, or another failed login.
 * @param counter of the address that it came from
 * @returns seconds until the next attempt; undefined if it is allowed at once
 */
export async function countWrongKey(redis: Redis, counter: string): Promise<number | undefined> {
  const resetMs = (await countWrong.run(
    redis,
    [counter],
    [WRONG_KEYS_PER_MINUTE, RATE_WINDOW_SECONDS * 1000],
  )) as number;
  return resetMs === 0 ? undefined : Math.ceil(resetMs / 1000);
}

/** `submit`: jobs. `records`: bytes. `transcripts`: seconds of audio. */
type TenantRate = 'read' | 'submit' | 'records' | 'transcripts';

export function rateKey(kind: TenantRate | 'failed-key', who: string): string {
  return ownKey('rate', kind, who);
}

interface Rate {
  /** Units of its kind in a window. */
  readonly limit: number;
  /** Units to take; default 0, which only looks. */
  readonly cost?: number;
  /** Default a minute. */
  readonly windowSeconds?: number;
}

/** @returns what is left, and whether the cost fitted; if not, nothing was taken */
export async function takeRate(
  redis: Redis,
  kind: TenantRate,
  tenant: string,
  { limit, cost = 0, windowSeconds = RATE_WINDOW_SECONDS }: Rate,
): Promise<RateState & { readonly taken: boolean }> {
  const answer = await take.run(redis, [rateKey(kind, tenant)], [limit, cost, windowSeconds * 1000]);
  const [taken, remaining, resetMs] = answer as [0 | 1, number, number];
  return {
    taken: taken === 1,
    ...{ limit, remaining: Math.max(0, remaining), resetSeconds: Math.ceil(resetMs / 1000) },
  };
}

/** @param limit units of `kind` per minute and tenant */
export function lookAtRate(
  redis: Redis,
  kind: TenantRate,
  tenant: string,
  limit: number,
): Promise<RateState> {
  return takeRate(redis, kind, tenant, { limit });
}
