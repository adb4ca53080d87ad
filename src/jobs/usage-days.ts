/**
 * What a key's jobs have used, by day (decisions A4). Jobs are counted where their end is filed
 * (lua/bullmq/file-ended.lua), so each reader first files what has ended since.
 */
import type { UsageDay } from 'soundpost-contract/answers';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { readHash, unlessUnreadable } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import { fileRecentEnds } from './job-index.ts';

/** Days that are kept, today included. */
export const USAGE_DAYS = 90;
const DAY_MS = 24 * 60 * 60 * 1000;

const count = z.coerce.number().default(0);
const StoredDay = z.object({
  jobs: count,
  failed: count,
  audioMs: count,
  bytesIn: count,
  bytesOut: count,
  processorMs: count,
});

/** @param span days in UTC, both inclusive; default: as far as is kept. Oldest first */
export async function readUsageDays(
  redis: Redis,
  tenant: string,
  { from, to }: { readonly from?: string | undefined; readonly to?: string | undefined },
): Promise<UsageDay[]> {
  await fileRecentEnds(redis);
  const today = Math.floor(redisNow() / DAY_MS);
  const first = Math.max(dayOf(from) ?? 0, today - USAGE_DAYS + 1);
  const last = Math.min(dayOf(to) ?? today, today);
  const days = Array.from({ length: Math.max(0, last - first + 1) }, (_, nth) => first + nth);
  return Promise.all(days.map((day) => readDay(redis, tenant, day)));
}

async function readDay(redis: Redis, tenant: string, day: number): Promise<UsageDay> {
  const stored = await unlessUnreadable(
    () => readHash(redis, ownKey('usage', tenant, String(day)), StoredDay),
    () => undefined,
  );
  const { audioMs, processorMs, ...counts } = stored ?? StoredDay.parse({});
  return {
    day: new Date(day * DAY_MS).toISOString().slice(0, 10),
    ...counts,
    audioSeconds: audioMs / 1000,
    processorSeconds: processorMs / 1000,
  };
}

function dayOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text) / DAY_MS;
}
