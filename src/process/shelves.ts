/** Everything that the service stores, with the records that name it. */
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { Redis } from 'soundpost-kit/redis/connection';
import { type Inventory, type Shelf, unnamedObjects } from 'soundpost-kit/storage/inventory';
import { recordKey } from '../jobs/bullmq-internals.ts';
import { isUploadKnown } from '../jobs/uploads/record.ts';
import type { Config } from './config.ts';

const DAY_SECONDS = 24 * 60 * 60;

/** Beside ours, a bucket may hold names of other applications: none of these is ever ours. */
const JOB = /^job_[0-9a-f]{16}$/;
const UPLOAD = /^upl_[0-9a-f]{16}$/;
const MEDIA = /^(?<id>[0-9a-f]{32})\.enc$/;

type Ttls = Pick<Config, 'OUTPUT_TTL_SECONDS' | 'UPLOAD_TTL_SECONDS' | 'MEDIA_TTL_SECONDS'>;

export function shelvesOf(ttls: Ttls, redis: Redis): readonly Shelf[] {
  const shelf = (
    folder: string,
    form: RegExp,
    isKnown: (name: string) => Promise<boolean>,
    keepSeconds: number,
  ): Shelf => ({
    folder,
    areKnown: (names) => Promise.all(names.map(async (name) => !form.test(name) || (await isKnown(name)))),
    keepSeconds,
  });
  const ofUpload = (file: string): Promise<boolean> => isUploadKnown(redis, file);
  return [
    shelf(
      'files/',
      JOB,
      async (jobId) => (await redis.exists(recordKey('extract', jobId))) === 1,
      ttls.OUTPUT_TTL_SECONDS,
    ),
    shelf('uploads/', UPLOAD, ofUpload, ttls.UPLOAD_TTL_SECONDS),
    // What has not arrived completely is written to for longer than it is kept.
    shelf('uploads/.incoming/', UPLOAD, ofUpload, Math.max(DAY_SECONDS, ttls.UPLOAD_TTL_SECONDS)),
    shelf(
      'media/',
      MEDIA,
      async (name) => {
        const id = MEDIA.exec(name)?.groups?.id ?? '';
        return (await redis.zscore(gatewayKey('media-expiry'), id)) !== null;
      },
      ttls.MEDIA_TTL_SECONDS,
    ),
  ];
}

/**
 * Removes what no record names, once its time is over: Redis was lost, or restored from a backup.
 * @param proceed called before each removal; throws where the sweep has to stop
 * @returns how many objects
 */
export async function removeUnnamed(
  inventory: Inventory,
  shelves: readonly Shelf[],
  nowMs: () => number,
  proceed: () => Promise<void>,
): Promise<number> {
  let removed = 0;
  for (const shelf of shelves) {
    for await (const { key, untilMs } of unnamedObjects(inventory, shelf)) {
      await proceed();
      if (untilMs > nowMs()) continue;
      await inventory.remove(key);
      removed += 1;
    }
  }
  return removed;
}
