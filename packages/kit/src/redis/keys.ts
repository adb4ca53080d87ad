/** Names of our keys in Redis. `src/jobs/bullmq-internals.ts` knows BullMQ's. */

/** The braces keep all keys of an installation in one slot of a cluster. */
export const KEY_PREFIX = '{soundpost}';

/** One of our keys. It must not look like BullMQ's: the second segment is never a queue's name. */
export function ownKey(...segments: readonly string[]): string {
  return [KEY_PREFIX, 'sp', ...segments].join(':');
}
