/**
 * Seconds of processor time that a key may use a minute (`CPU_SECONDS_PER_MINUTE`). What a job used is charged when it ends, as a debt that is paid off with
 * time; while it is more than a minute's worth, the key's further jobs wait their turn as those of the priority `low` do. None is refused.
 */
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RedisScript } from 'soundpost-kit/redis/script';

const MINUTE_MS = 60_000;

/** When the key has paid off what its jobs used, Redis' TIME in ms; there while it has not. */
export function processorDebtKey(tenant: string): string {
  return ownKey('processor', tenant);
}

const charge = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local untilMs = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0')) + tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.0f', untilMs), 'PX', math.max(1, math.ceil(untilMs - now)))
`);

/** @param perMinute seconds */
export async function chargeProcessor(
  redis: Redis,
  tenant: string,
  seconds: number,
  perMinute: number,
): Promise<void> {
  await charge.run(redis, [processorDebtKey(tenant)], [(seconds / perMinute) * MINUTE_MS]);
}

/** Lua: `isOverBudget(debtKey, now)`. */
export const IS_OVER_BUDGET = `
local function isOverBudget(debtKey, now)
  return tonumber(redis.call('GET', debtKey) or '0') > now + ${MINUTE_MS}
end
`;
