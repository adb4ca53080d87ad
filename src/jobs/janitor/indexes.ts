/** The lists of tenants' jobs: entries go when their job is no longer answered. */

import { redisNow } from 'soundpost-kit/redis/clock';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { tenantJobsKey } from '../reservation.ts';
import type { SweepContext } from './context.ts';

const PAGE = 500;

const trim = loadScript(new URL('./lua/job-index-trim.lua', import.meta.url));

/** Returns how many entries were removed. */
export async function sweepJobIndexes(context: SweepContext): Promise<number> {
  let removed = 0;
  for (const tenant of await context.redis.smembers(ownKey('keys'))) {
    removed += await trimIndex(context, tenant);
  }
  return removed;
}

async function trimIndex({ redis, jobTtlSeconds, proceed }: SweepContext, tenant: string): Promise<number> {
  const endedBefore = redisNow() - jobTtlSeconds * 1000;
  let removed = 0;
  let kept = 0;
  for (;;) {
    await proceed();
    const args = [endedBefore, kept, PAGE];
    const [seen, gone] = (await trim.run(redis, [tenantJobsKey(tenant)], args)) as [number, number];
    removed += gone;
    kept += seen - gone;
    if (seen < PAGE) {
      return removed;
    }
  }
}
