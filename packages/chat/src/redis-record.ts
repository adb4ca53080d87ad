/** Changes one JSON record in a Redis hash, safe against concurrent changes. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { loadScript } from 'soundpost-kit/redis/script';
import type { z } from 'zod';

const replaceScript = loadScript(new URL('./lua/record-compare-and-set.lua', import.meta.url));

interface RecordPlace<Schema extends z.ZodType> {
  readonly key: string;
  readonly field: string;
  readonly schema: Schema;
}

export async function readRecord<Schema extends z.ZodType>(
  redis: Redis,
  { key, field, schema }: RecordPlace<Schema>,
): Promise<z.output<Schema> | undefined> {
  const stored = await redis.hget(key, field);
  return stored === null ? undefined : schema.parse(JSON.parse(stored));
}

/**
 * Replaces a record with the result of `change`; retries if another process changed it.
 * @returns the new record, or undefined if there is none
 */
export async function changeRecord<Schema extends z.ZodType>(
  redis: Redis,
  { key, field, schema }: RecordPlace<Schema>,
  change: (record: z.output<Schema>) => z.output<Schema>,
): Promise<z.output<Schema> | undefined> {
  for (;;) {
    const stored = await redis.hget(key, field);
    if (stored === null) {
      return undefined;
    }
    const changed = change(schema.parse(JSON.parse(stored)));
    if ((await replaceScript.run(redis, [key], [field, stored, JSON.stringify(changed)])) === 1) {
      return changed;
    }
  }
}
