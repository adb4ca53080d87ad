/** What our keys in Redis are called. Those of BullMQ's are known to `src/jobs/bullmq-internals.ts`. */

/** In braces, so that a cluster keeps all keys of one installation in one slot. */
export const KEY_PREFIX = '{soundpost}';

/** A key of ours. None may look like one of BullMQ's, so the second segment is never a queue's name. */
export function ownKey(...segments: readonly string[]): string {
  return [KEY_PREFIX, 'sp', ...segments].join(':');
}
