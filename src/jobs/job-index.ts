/** Who has which jobs: indexes that hold ids only; the records are read from the jobs themselves. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { z } from 'zod';
import { tenantJobsKey } from './reservation.ts';

/** Where a list goes on: behind this job. */
export interface ListPosition {
  readonly createdAtMs: number;
  readonly jobId: string;
}

/**
 * Ids of a tenant's jobs, newest first, behind a position.
 * @param count how many at the most
 */
export async function listJobIds(
  redis: Redis,
  tenant: string,
  after: ListPosition | undefined,
  count: number,
): Promise<ListPosition[]> {
  const found: ListPosition[] = [];
  for (let offset = 0; ; offset += count) {
    const flat = await redis.zrevrangebyscore(
      tenantJobsKey(tenant),
      after?.createdAtMs ?? '+inf',
      '-inf',
      'WITHSCORES',
      'LIMIT',
      offset,
      count,
    );
    for (let index = 0; index < flat.length; index += 2) {
      const position = { jobId: flat[index] ?? '', createdAtMs: Number(flat[index + 1]) };
      if (after === undefined || isBehind(position, after)) {
        found.push(position);
      }
    }
    if (found.length >= count || flat.length < count * 2) {
      return found.slice(0, count);
    }
  }
}

/** Redis orders equal scores by member, here from the last to the first. */
function isBehind(position: ListPosition, after: ListPosition): boolean {
  return (
    position.createdAtMs < after.createdAtMs ||
    (position.createdAtMs === after.createdAtMs && position.jobId < after.jobId)
  );
}

const StoredBatch = z.object({ tenant: z.string(), jobs: z.string().transform((text) => text.split(',')) });

export async function saveBatch(
  redis: Redis,
  tenant: string,
  batchId: string,
  jobIds: readonly string[],
  keepSeconds: number,
): Promise<void> {
  const key = ownKey('batch', batchId);
  await redis
    .multi()
    .hset(key, { tenant, jobs: jobIds.join(',') })
    .expire(key, Math.ceil(keepSeconds))
    .exec();
}

/** The ids of a tenant's batch in the order of the request; unknown and foreign are the same answer. */
export async function findBatch(
  redis: Redis,
  tenant: string,
  batchId: string,
): Promise<string[] | undefined> {
  const parsed = StoredBatch.safeParse(await redis.hgetall(ownKey('batch', batchId)));
  return parsed.success && parsed.data.tenant === tenant ? parsed.data.jobs : undefined;
}

/** How many unfinished jobs the tenant has at most: ended ones are dropped from the set only when it looks full. */
export async function unfinishedIds(redis: Redis, tenant: string): Promise<string[]> {
  return redis.smembers(ownKey('unfinished', tenant));
}
