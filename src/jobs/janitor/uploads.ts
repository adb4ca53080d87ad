/** Removes expired uploads, unless a job needs them or they are being written. */

import { eraseUpload, expiredUploads, uploadLease } from '../uploads/record.ts';
import type { SweepContext } from './context.ts';

const PAGE = 100;
const LEASE_MS = 30_000;

/** Returns how many uploads were removed. */
export async function sweepUploads(context: SweepContext): Promise<number> {
  let removed = 0;
  // Uploads that must stay are skipped: they remain at the front.
  let kept = 0;
  for (;;) {
    const page = await expiredUploads(context.redis, kept, PAGE);
    for (const file of page) {
      await context.proceed();
      const gone = await erase(context, file);
      removed += gone ? 1 : 0;
      kept += gone ? 0 : 1;
    }
    if (page.length < PAGE) {
      return removed;
    }
  }
}

async function erase({ redis, removeUpload }: SweepContext, file: string): Promise<boolean> {
  const lease = uploadLease(file);
  const { isTaken, holder } = await lease.take(redis, { leaseMs: LEASE_MS });
  if (!isTaken) {
    return false;
  }
  try {
    return await eraseUpload(redis, file, removeUpload);
  } finally {
    await lease.release(redis, holder);
  }
}
