/**
 * Seconds of processor time that a key may use a minute (`CPU_SECONDS_PER_MINUTE`). What a job used is charged when it ends, as a debt that is paid off with
 * time; while it is more than a minute's worth, the key's further jobs wait their turn as those of the priority `low` do. None is refused.
 */
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';

export const MINUTE_MS = 60_000;

/** When the key has paid off what its jobs used, Redis' TIME in ms; there while it has not. */
export function processorDebtKey(tenant: string): string {
  return ownKey('processor', tenant);
}

const charge = loadScript(new URL('./lua/processor-charge.lua', import.meta.url));

/** @param perMinute seconds */
export async function chargeProcessor(
  redis: Redis,
  tenant: string,
  seconds: number,
  perMinute: number,
): Promise<void> {
  await charge.run(redis, [processorDebtKey(tenant)], [(seconds / perMinute) * MINUTE_MS]);
}
