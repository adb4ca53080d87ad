/** The rate of a tenant's reads, and of failed keys by address. */
import { ownKey } from './names.ts';
import type { Redis } from './redis.ts';
import { RATE_FUNCTION, RATE_WINDOW_SECONDS, type RateState } from './reservation.ts';
import { RedisScript } from './script.ts';

const take = new RedisScript(`
${RATE_FUNCTION}
local taken, remaining, reset = take(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
return {taken and 1 or 0, remaining, reset}
`);

/**
 * Takes `cost` from what `who` may do of `kind` in a minute; a cost of 0 only looks.
 * @param limit how many a minute
 */
export async function takeRate(
  redis: Redis,
  kind: 'read' | 'submit' | 'failed-key',
  who: string,
  limit: number,
  cost: number,
): Promise<{ allowed: boolean; rate: RateState }> {
  const answer = await take.run(
    redis,
    [ownKey('rate', kind, who)],
    [limit, cost, RATE_WINDOW_SECONDS * 1000],
  );
  const [allowed, remaining, resetMs] = answer as [number, number, number];
  return {
    allowed: allowed === 1,
    rate: { limit, remaining: Math.max(0, remaining), resetSeconds: Math.ceil(resetMs / 1000) },
  };
}
