/** The rates of a tenant, looked at. */

import type { Redis } from './connection.ts';
import { ownKey } from './keys.ts';
import { loadScript } from './script.ts';

export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window begins anew. */
  readonly resetSeconds: number;
}

export const RATE_WINDOW_SECONDS = 60;

/** From one address, before further ones are answered 429 (decisions A6). A right key is answered whatever came before it. */
export const WRONG_KEYS_PER_MINUTE = 30;

const look = loadScript(new URL('./lua/rate-read.lua', import.meta.url));

const countWrong = loadScript(new URL('./lua/wrong-key-count.lua', import.meta.url));

/**
 * Counts a wrong key, or whatever else opens a door.
 * @param counter of the address that it came from
 * @returns after how many seconds the next one may be tried; undefined while there were few
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

/** @param limit how many of `kind` the tenant may do in a minute */
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
