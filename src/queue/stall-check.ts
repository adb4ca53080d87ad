/** How often a worker looks for jobs whose worker is no more. */

/**
 * BullMQ gives a job away in the second look that finds it in nobody's hands, and only one look in an interval counts,
 * whoever makes it. Looks that were as far apart as a lock is long let jobs wait up to three times as long as that.
 */
const LOOKS_PER_LOCK = 6;

/** For BullMQ's `stalledInterval`, ms: a lost job is taken up within its lock and two of these. */
export function stallCheckMs(lockSeconds: number): number {
  // Redis takes whole milliseconds only.
  return Math.ceil((lockSeconds * 1000) / LOOKS_PER_LOCK);
}
