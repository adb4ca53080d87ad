/**
 * A key's processor seconds per minute (`CPU_SECONDS_PER_MINUTE`). A job is charged when it ends,
 * as a debt that time pays off. Above a minute's worth, new jobs queue as `low`.
 */
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';

export const MINUTE_MS = 60_000;

/** When the key's debt is paid off, Redis' TIME in ms; exists only while in debt. */
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
