/** Indexes of each tenant's jobs; they hold ids only, the records are read from the jobs. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { z } from 'zod';
import { tenantJobsKey } from './reservation.ts';

/** A list continues after this job. */
export interface ListPosition {
  readonly createdAtMs: number;
  readonly jobId: string;
}

/** Ids of a tenant's jobs, newest first, after a position. @param count at most */
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

/** Redis orders equal scores by member, here in reverse. */
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

/** A batch's job ids in the order of the request; undefined if unknown or another tenant's. */
export async function findBatch(
  redis: Redis,
  tenant: string,
  batchId: string,
): Promise<string[] | undefined> {
  const parsed = StoredBatch.safeParse(await redis.hgetall(ownKey('batch', batchId)));
  return parsed.success && parsed.data.tenant === tenant ? parsed.data.jobs : undefined;
}

/** Unfinished jobs; may include ended ones, which are dropped only when the set looks full. */
export async function unfinishedIds(redis: Redis, tenant: string): Promise<string[]> {
  return redis.smembers(ownKey('unfinished', tenant));
}
