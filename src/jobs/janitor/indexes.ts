/** The lists of tenants' jobs: entries go when their job is no longer answered. */

import { redisNow } from 'soundpost-kit/redis/clock';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RedisScript } from 'soundpost-kit/redis/script';
import { TIMES_OF } from '../bullmq-internals.ts';
import { tenantJobsKey } from '../reservation.ts';
import type { SweepContext } from './context.ts';

const PAGE = 500;

// A job is submitted before it ends: only entries that are old enough can be over, and those are looked at one by one.
const trim = new RedisScript(`
${TIMES_OF}
local index = KEYS[1]
local endedBefore, skip, page = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local ids = redis.call('ZRANGEBYSCORE', index, '-inf', endedBefore, 'LIMIT', skip, page)
local removed = 0
for _, id in ipairs(ids) do
  local created, finished = timesOf(id)
  if not created or (finished and finished < endedBefore) then
    removed = removed + redis.call('ZREM', index, id)
  end
end
return {#ids, removed}
`);

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
