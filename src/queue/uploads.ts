/** What is known of an upload beside its bytes: whose it is, how it is called, until when it is kept. */
import { z } from 'zod';
import { ownKey } from './names.ts';
import type { Redis } from './redis.ts';

const StoredUpload = z.object({
  tenant: z.string(),
  name: z.string(),
  sizeBytes: z.coerce.number().int(),
  expiresAtMs: z.coerce.number(),
});

export interface Upload extends z.infer<typeof StoredUpload> {
  readonly file: string;
}

/** Where the bytes of an upload lie in the storage. */
export function uploadStorageKey(file: string): string {
  return `uploads/${file}`;
}

export async function saveUpload(redis: Redis, { file, ...upload }: Upload): Promise<void> {
  await redis
    .multi()
    .hset(ownKey('upload', file), upload)
    .pexpireat(ownKey('upload', file), upload.expiresAtMs)
    .exec();
}

/** The complete upload of that tenant; unknown, foreign, incomplete and expired are the same answer. */
export async function findUpload(redis: Redis, tenant: string, file: string): Promise<Upload | undefined> {
  const parsed = StoredUpload.safeParse(await redis.hgetall(ownKey('upload', file)));
  return parsed.success && parsed.data.tenant === tenant ? { file, ...parsed.data } : undefined;
}
