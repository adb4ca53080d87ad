/**
 * Indexes of each tenant's jobs: all by time, those that have ended also by state, and the
 * unfinished ones. They hold ids only, and follow from BullMQ's own sets of ended jobs: each reader
 * first moves what has ended since. The janitor repairs them, and derives them anew once a day.
 */

import type { JobStatus } from 'soundpost-contract/job';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { readHash, unlessUnreadable, withEdition } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { fileEnds, fileUnfinished } from './bullmq-internals.ts';
import { tenantJobsKey, unfinishedKey } from './reservation.ts';

/** A list continues after this job. */
export interface ListPosition {
  /** When it was submitted. */
  readonly createdAtMs: number;
  readonly jobId: string;
}

/** Of submission, ms since the epoch, both inclusive. */
export interface TimeSpan {
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

/** Reads positions newest first. */
export interface JobListing {
  /** Behind a position. @param count at most */
  readonly next: (after: ListPosition | undefined, count: number) => Promise<readonly ListPosition[]>;
  readonly total: () => Promise<number>;
}

type EndedStatus = Extract<JobStatus, 'completed' | 'failed'>;

/** Ids of a tenant's ended jobs, scored by submission like all of its jobs. */
const endedKey = (status: EndedStatus, tenant: string): string => ownKey(status, tenant);

/** All indexes of a tenant that are sorted by time. */
export function timeIndexes(tenant: string): string[] {
  return [tenantJobsKey(tenant), endedKey('completed', tenant), endedKey('failed', tenant)];
}

export function jobIndexKeys(tenant: string): string[] {
  return [...timeIndexes(tenant), unfinishedKey(tenant)];
}

const ENDS = ownKey('ends');
const ENDS_OF_DAY = ownKey('ends-of-day');
const DAY_SECONDS = 24 * 60 * 60;

/** For the janitor. */
export async function repairIndexes(redis: Redis, tenants: readonly string[]): Promise<void> {
  await fileRecentEnds(redis);
  // Expires each day, and is then read from the beginning.
  await fileEnds(redis, ENDS_OF_DAY);
  if ((await redis.ttl(ENDS_OF_DAY)) < 0) await redis.expire(ENDS_OF_DAY, DAY_SECONDS);
  for (const tenant of tenants) await fileUnfinished(redis, unfinishedKey(tenant), tenant, undefined);
}

/** Files what has ended since the last time. */
export function fileRecentEnds(redis: Redis): Promise<void> {
  return fileEnds(redis, ENDS);
}

/** How many jobs of the tenant have not ended; takes the same time for any number. */
export async function countUnfinished(redis: Redis, tenant: string): Promise<number> {
  await fileEnds(redis, ENDS, 1);
  return redis.scard(unfinishedKey(tenant));
}

/** The tenant's jobs, or those in one state. */
export async function listing(
  redis: Redis,
  tenant: string,
  status: JobStatus | undefined,
  span: TimeSpan,
): Promise<JobListing> {
  if (status === undefined) return sortedListing(redis, tenantJobsKey(tenant), span);
  await fileRecentEnds(redis);
  const flat = await fileUnfinished(redis, unfinishedKey(tenant), tenant, status);
  return status === 'completed' || status === 'failed'
    ? sortedListing(redis, endedKey(status, tenant), span)
    : givenListing(positionsOf(flat), span);
}

function sortedListing(redis: Redis, key: string, { fromMs = 0, toMs }: TimeSpan): JobListing {
  return {
    async next(after, count) {
      const found: ListPosition[] = [];
      const most = after === undefined ? (toMs ?? '+inf') : Math.min(after.createdAtMs, toMs ?? Infinity);
      for (let offset = 0; ; offset += count) {
        const range = [key, most, fromMs, 'WITHSCORES', 'LIMIT', offset, count] as const;
        const page = positionsOf(await redis.zrevrangebyscore(...range));
        found.push(...page.filter((position) => isBehind(position, after)));
        if (found.length >= count || page.length < count) return found.slice(0, count);
      }
    },
    total: () => redis.zcount(key, fromMs, toMs ?? '+inf'),
  };
}

/** @param positions in any order */
export function givenListing(
  positions: readonly ListPosition[],
  { fromMs = 0, toMs = Infinity }: TimeSpan,
): JobListing {
  const sorted = positions
    .filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs <= toMs)
    .toSorted((one, other) => (isBehind(one, other) ? 1 : -1));
  return {
    next: async (after, count) => sorted.filter((position) => isBehind(position, after)).slice(0, count),
    total: async () => sorted.length,
  };
}

/** @param flat ids, each followed by its score */
function positionsOf(flat: readonly string[]): ListPosition[] {
  return flat.flatMap((jobId, index) =>
    index % 2 === 0 ? [{ jobId, createdAtMs: Number(flat[index + 1]) }] : [],
  );
}

/** Redis orders equal scores by member, here in reverse. */
function isBehind(position: ListPosition, after: ListPosition | undefined): boolean {
  return (
    after === undefined ||
    position.createdAtMs < after.createdAtMs ||
    (position.createdAtMs === after.createdAtMs && position.jobId < after.jobId)
  );
}

/** When each job was submitted; those that are not the tenant's are left out. */
export async function positionsIn(
  redis: Redis,
  tenant: string,
  jobIds: readonly string[],
): Promise<ListPosition[]> {
  if (jobIds.length === 0) return [];
  const scores = await redis.zmscore(tenantJobsKey(tenant), ...jobIds);
  return jobIds.flatMap((jobId, index) => {
    const score = scores[index] ?? null;
    return score === null ? [] : [{ jobId, createdAtMs: Number(score) }];
  });
}

const drop = loadScript(new URL('./lua/index-drop.lua', import.meta.url));
/** A job is added right after its place in the indexes. */
const ADDED_WITHIN_MS = 60_000;

/** Drops those among these jobs that have no record. */
export async function dropMissing(
  redis: Redis,
  tenant: string,
  jobs: readonly ListPosition[],
): Promise<void> {
  const oldMs = redisNow() - ADDED_WITHIN_MS;
  const ids = jobs.filter(({ createdAtMs }) => createdAtMs < oldMs).map(({ jobId }) => jobId);
  if (ids.length > 0) await drop.run(redis, jobIndexKeys(tenant), ids);
}

/**
 * Lists a job by the state in which it was read: of a damaged record that is another one than
 * before.
 */
export async function fileAs(
  redis: Redis,
  tenant: string,
  { jobId, createdAtMs }: ListPosition,
  status: JobStatus,
): Promise<void> {
  const filing = redis.multi();
  for (const ended of ['completed', 'failed'] as const) {
    const key = endedKey(ended, tenant);
    if (ended === status) filing.zadd(key, createdAtMs, jobId);
    else filing.zrem(key, jobId);
  }
  await filing.exec();
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
    .hset(key, withEdition({ tenant, jobs: jobIds.join(',') }))
    .expire(key, Math.ceil(keepSeconds))
    .exec();
}

/**
 * A batch's job ids in the order of the request; undefined alike if unknown, foreign or unreadable.
 */
export async function findBatch(
  redis: Redis,
  tenant: string,
  batchId: string,
): Promise<string[] | undefined> {
  const batch = await unlessUnreadable(
    () => readHash(redis, ownKey('batch', batchId), StoredBatch),
    () => undefined,
  );
  return batch?.tenant === tenant ? batch.jobs : undefined;
}

/** Unfinished jobs; may include ended ones. */
export async function unfinishedIds(redis: Redis, tenant: string): Promise<string[]> {
  return redis.smembers(unfinishedKey(tenant));
}
