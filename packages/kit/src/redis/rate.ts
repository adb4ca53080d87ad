/** The rates of a tenant, looked at. */

import type { Redis } from './connection.ts';
import { ownKey } from './keys.ts';
import { RedisScript } from './script.ts';

export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window begins anew. */
  readonly resetSeconds: number;
}

export const RATE_WINDOW_SECONDS = 60;

/** From one address, before further ones are answered 429 (decisions A6). A right key is answered whatever came before it. */
export const WRONG_KEYS_PER_MINUTE = 30;

/** Fixed window: the first request opens it. Shared by submissions and reads, so that the rule stands once. */
export const RATE_FUNCTION = `
local function take(key, limit, cost, windowMs)
  local used = tonumber(redis.call('GET', key) or '0')
  local reset = redis.call('PTTL', key)
  if reset <= 0 then used, reset = 0, windowMs end
  if used + cost > limit then return false, limit - used, reset end
  redis.call('SET', key, used + cost, 'PX', reset)
  return true, limit - used - cost, reset
end
`;

const look = new RedisScript(`
${RATE_FUNCTION}
local _, remaining, reset = take(KEYS[1], tonumber(ARGV[1]), 0, tonumber(ARGV[2]))
return {remaining, reset}
`);

const countWrong = new RedisScript(`
${RATE_FUNCTION}
local taken, _, reset = take(KEYS[1], ${WRONG_KEYS_PER_MINUTE}, 1, ${RATE_WINDOW_SECONDS * 1000})
return taken and 0 or reset
`);

/**
 * Counts a wrong key, or whatever else opens a door.
 * @param counter of the address that it came from
 * @returns after how many seconds the next one may be tried; undefined while there were few
 */
export async function countWrongKey(redis: Redis, counter: string): Promise<number | undefined> {
  const resetMs = (await countWrong.run(redis, [counter], [])) as number;
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
