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

const look = loadScript(new URL('./lua/rate-read.lua', import.meta.url));

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

export function rateKey(kind: 'read' | 'submit' | 'failed-key', who: string): string {
  return ownKey('rate', kind, who);
}

/** @param limit requests of `kind` per minute and tenant */
export async function lookAtRate(
  redis: Redis,
  kind: 'read' | 'submit',
  tenant: string,
  limit: number,
): Promise<RateState> {
  const answer = await look.run(redis, [rateKey(kind, tenant)], [limit, RATE_WINDOW_SECONDS * 1000]);
  const [remaining, resetMs] = answer as [number, number];
  return { limit, remaining: Math.max(0, remaining), resetSeconds: Math.ceil(resetMs / 1000) };
}
