/**
 * What is known of an upload beside its bytes: whose it is, how it is called, whether it is complete, until when it is kept,
 * and which jobs still need it (decisions A5). The bytes outlive `expiresAtMs` while a job holds them.
 */

import { randomBytes } from 'node:crypto';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RedisLease } from 'soundpost-kit/redis/lease';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';

const StoredUpload = z.object({
  tenant: z.string(),
  name: z.string(),
  sizeBytes: z.coerce.number().int().nonnegative(),
  expiresAtMs: z.coerce.number(),
  state: z.enum(['incomplete', 'complete']),
  tusMetadata: z.string().optional(),
  uncheckedFrom: z.coerce.number().int().nonnegative().optional(),
});

export interface Upload {
  readonly file: string;
  readonly tenant: string;
  /** The caller's name for it. */
  readonly name: string;
  /** Of an incomplete upload what was announced, 0 where nothing was. */
  readonly sizeBytes: number;
  readonly expiresAtMs: number;
  readonly state: 'incomplete' | 'complete';
  /** `Upload-Metadata` of a tus upload, as it was sent. */
  readonly tusMetadata?: string | undefined;
  /** Bytes from here on are of a chunk whose checksum is not known to be right. */
  readonly uncheckedFrom?: number | undefined;
}

/** Ids of all uploads, scored by when they expire: what the janitor walks. */
const INDEX = ownKey('uploads');
const recordKey = (file: string): string => ownKey('upload', file);
/** What a tenant may have in uploads that are unfinished or have not expired (decisions A5). */
interface UploadBudget {
  readonly uploads: number;
  readonly bytes: number;
}

/** Files of a tenant's uploads that count against its budget, scored by when they expire. */
const countedKey = (tenant: string): string => ownKey('uploads-of', tenant);
/** Ids of the jobs that were given the upload, scored by when. */
const holdersKey = (file: string): string => ownKey('upload-holders', file);

/** A job is added to its queue after it has taken hold; one that has not appeared by then never will. */
const APPEARS_WITHIN_MS = 60_000;

export function newUploadId(): string {
  return `upl_${randomBytes(8).toString('hex')}`;
}

/** Where the bytes of a complete upload lie in the storage. */
export function uploadStorageKey(file: string): string {
  return `uploads/${file}`;
}

/** The bytes of an upload are written and erased under it. */
export function uploadLease(file: string): RedisLease {
  return new RedisLease(ownKey, `upload:${file}`);
}

const begin = loadScript(new URL('./lua/upload-begin.lua', import.meta.url));

/** Why an upload does not fit its tenant's budget, and after how many seconds the first of those that are there expires. */
interface OverBudget {
  readonly limit: keyof UploadBudget;
  readonly retryAfterSeconds: number;
}

/**
 * To be called before the first byte is stored, so that nothing is stored that the janitor does not know of.
 * @param budget that the upload has to fit, and counts against from now on; default none
 */
export async function beginUpload(
  redis: Redis,
  upload: Omit<Upload, 'state'>,
  budget?: UploadBudget,
): Promise<OverBudget | undefined> {
  const { file, tenant, name, sizeBytes, expiresAtMs, tusMetadata } = upload;
  const fields = {
    tenant,
    name,
    sizeBytes,
    expiresAtMs,
    state: 'incomplete',
    ...(tusMetadata === undefined ? {} : { tusMetadata }),
  };
  const keys = [recordKey(file), INDEX, countedKey(tenant)];
  const limits = [budget?.uploads ?? '', budget?.bytes ?? ''];
  const args = [file, expiresAtMs, sizeBytes, ...limits, recordKey(''), ...Object.entries(fields).flat()];
  const [limit, retryAfterSeconds = 0] = (await begin.run(redis, keys, args)) as
    | [keyof UploadBudget, number]
    | [];
  return limit === undefined ? undefined : { limit, retryAfterSeconds };
}

/** What counts against the tenant's budget at the moment. */
export async function uploadsOf(redis: Redis, tenant: string): Promise<UploadBudget> {
  const files = await redis.zrangebyscore(countedKey(tenant), `(${redisNow()}`, '+inf');
  const sizes = await Promise.all(files.map((file) => redis.hget(recordKey(file), 'sizeBytes')));
  return { uploads: files.length, bytes: sizes.reduce((sum, size) => sum + Number(size ?? 0), 0) };
}

const complete = loadScript(new URL('./lua/upload-complete.lua', import.meta.url));

/** Makes the upload a source. False when it was withdrawn meanwhile: then its bytes are the caller's to remove. */
export async function completeUpload(
  redis: Redis,
  { file, sizeBytes, expiresAtMs }: Pick<Upload, 'file' | 'sizeBytes' | 'expiresAtMs'>,
): Promise<boolean> {
  const args = [file, sizeBytes, expiresAtMs, countedKey('')];
  return (await complete.run(redis, [recordKey(file), INDEX], args)) === 1;
}

/** Notes that bytes from `offset` on are not checked yet; undefined: all are. */
export async function markUnchecked(redis: Redis, file: string, offset: number | undefined): Promise<void> {
  await (offset === undefined
    ? redis.hdel(recordKey(file), 'uncheckedFrom')
    : redis.hset(recordKey(file), 'uncheckedFrom', offset));
}

/** The upload of that tenant in whatever state; unknown, foreign and expired are the same answer. */
export async function readUpload(redis: Redis, tenant: string, file: string): Promise<Upload | undefined> {
  const parsed = StoredUpload.safeParse(await redis.hgetall(recordKey(file)));
  return parsed.success && parsed.data.tenant === tenant && parsed.data.expiresAtMs > redisNow()
    ? { file, ...parsed.data }
    : undefined;
}

/** The complete upload of that tenant; unknown, foreign, incomplete and expired are the same answer. */
export async function findUpload(redis: Redis, tenant: string, file: string): Promise<Upload | undefined> {
  const upload = await readUpload(redis, tenant, file);
  return upload?.state === 'complete' ? upload : undefined;
}

const hold = loadScript(new URL('./lua/upload-hold.lua', import.meta.url));

/**
 * Keeps the bytes of an upload until the job has ended. To be called before the job is queued; a job that never appears holds
 * nothing. False when the upload has expired meanwhile.
 */
export async function holdUpload(redis: Redis, file: string, jobId: string): Promise<boolean> {
  return (await hold.run(redis, [recordKey(file), holdersKey(file)], [redisNow(), jobId])) === 1;
}

const held = loadScript(new URL('./lua/upload-is-held.lua', import.meta.url));

const withdraw = loadScript(new URL('./lua/upload-withdraw.lua', import.meta.url));

/** Makes the upload unknown to everybody at once. Its bytes stay until {@link eraseUpload}. */
export async function withdrawUpload(redis: Redis, file: string): Promise<void> {
  await withdraw.run(redis, [recordKey(file), INDEX], [file, countedKey('')]);
}

/**
 * Removes an expired or withdrawn upload, unless a job holds it still. The caller has the lease of the upload.
 * @param removeBytes the record goes after the bytes, so that a crash in between leaves nothing behind
 * @returns whether it is gone
 */
export async function eraseUpload(
  redis: Redis,
  file: string,
  removeBytes: (file: string) => Promise<void>,
): Promise<boolean> {
  const appearedBy = redisNow() - APPEARS_WITHIN_MS;
  if ((await held.run(redis, [holdersKey(file)], [appearedBy])) === 1) {
    return false;
  }
  await removeBytes(file);
  await redis.multi().del(recordKey(file), holdersKey(file)).zrem(INDEX, file).exec();
  return true;
}

/** Ids of uploads that have expired, the longest expired first. */
export async function expiredUploads(redis: Redis, skip: number, count: number): Promise<string[]> {
  return redis.zrangebyscore(INDEX, '-inf', redisNow(), 'LIMIT', skip, count);
}
