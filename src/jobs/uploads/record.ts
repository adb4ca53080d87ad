/**
 * An upload's record: owner, name, state, expiry, and the jobs that still need it (decisions A5).
 * Its bytes outlive `expiresAtMs` while a job holds them.
 */

import { randomBytes } from 'node:crypto';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RedisLease } from 'soundpost-kit/redis/lease';
import { readHash, unlessUnreadable, withEdition } from 'soundpost-kit/redis/record';
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
  /** Of an incomplete upload the announced size, 0 if none. */
  readonly sizeBytes: number;
  readonly expiresAtMs: number;
  readonly state: 'incomplete' | 'complete';
  /** `Upload-Metadata` of a tus upload, as sent. */
  readonly tusMetadata?: string | undefined;
  /** Bytes from here on belong to a chunk whose checksum is not verified. */
  readonly uncheckedFrom?: number | undefined;
}

/** Ids of all uploads, scored by expiry, for the janitor. */
const INDEX = ownKey('uploads');
const recordKey = (file: string): string => ownKey('upload', file);

/** A tenant's limits for uploads that are incomplete or not expired (decisions A5). */
interface UploadBudget {
  readonly uploads: number;
  readonly bytes: number;
}

/** A tenant's uploads that count against its budget, scored by expiry. */
const countedKey = (tenant: string): string => ownKey('uploads-of', tenant);
/** Ids of the jobs that use the upload, scored by when they took it. */
const holdersKey = (file: string): string => ownKey('upload-holders', file);

/** A job is queued right after taking hold; one that is not there in time never appears. */
const APPEARS_WITHIN_MS = 60_000;

export function newUploadId(): string {
  return `upl_${randomBytes(8).toString('hex')}`;
}

/** Storage key of a complete upload. */
export function uploadStorageKey(file: string): string {
  return `uploads/${file}`;
}

/** Required to write or erase an upload's bytes. */
export function uploadLease(file: string): RedisLease {
  return new RedisLease(ownKey, `upload:${file}`);
}

const begin = loadScript(new URL('./lua/upload-begin.lua', import.meta.url));

/** The exceeded limit, and the seconds until the first existing upload expires. */
interface OverBudget {
  readonly limit: keyof UploadBudget;
  readonly retryAfterSeconds: number;
}

/**
 * Call before storing the first byte, so that the janitor knows everything stored.
 * @param budget that the upload must fit, and counts against; default none
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
  const args = [
    file,
    expiresAtMs,
    sizeBytes,
    ...limits,
    recordKey(''),
    ...Object.entries(withEdition(fields)).flat(),
  ];
  const [limit, retryAfterSeconds = 0] = (await begin.run(redis, keys, args)) as
    | [keyof UploadBudget, number]
    | [];
  return limit === undefined ? undefined : { limit, retryAfterSeconds };
}

/** The tenant's current use of its budget. */
export async function uploadsOf(redis: Redis, tenant: string): Promise<UploadBudget> {
  const files = await redis.zrangebyscore(countedKey(tenant), `(${redisNow()}`, '+inf');
  const read = await Promise.all(files.map((file) => readRecord(redis, file, StoredUpload)));
  return { uploads: files.length, bytes: read.reduce((sum, upload) => sum + (upload?.sizeBytes ?? 0), 0) };
}

const complete = loadScript(new URL('./lua/upload-complete.lua', import.meta.url));

/** Makes the upload a source. False if it was withdrawn: then the caller removes its bytes. */
export async function completeUpload(
  redis: Redis,
  { file, sizeBytes, expiresAtMs }: Pick<Upload, 'file' | 'sizeBytes' | 'expiresAtMs'>,
): Promise<boolean> {
  const args = [file, sizeBytes, expiresAtMs, countedKey('')];
  return (await complete.run(redis, [recordKey(file), INDEX], args)) === 1;
}

/** Marks bytes from `offset` on as unchecked; undefined: all are checked. */
export async function markUnchecked(redis: Redis, file: string, offset: number | undefined): Promise<void> {
  await (offset === undefined
    ? redis.hdel(recordKey(file), 'uncheckedFrom')
    : redis.hset(recordKey(file), 'uncheckedFrom', offset));
}

/** Undefined alike if there is none, or none that can be read. */
function readRecord<Schema extends z.ZodType>(redis: Redis, file: string, schema: Schema) {
  return unlessUnreadable(
    () => readHash(redis, recordKey(file), schema),
    () => undefined,
  );
}

/** The tenant's upload in any state; undefined alike if unknown, foreign, expired or unreadable. */
export async function readUpload(redis: Redis, tenant: string, file: string): Promise<Upload | undefined> {
  const upload = await readRecord(redis, file, StoredUpload);
  return upload?.tenant === tenant && upload.expiresAtMs > redisNow() ? { file, ...upload } : undefined;
}

/** The tenant's complete upload; undefined alike if unknown, foreign, incomplete or expired. */
export async function findUpload(redis: Redis, tenant: string, file: string): Promise<Upload | undefined> {
  const upload = await readUpload(redis, tenant, file);
  return upload?.state === 'complete' ? upload : undefined;
}

const hold = loadScript(new URL('./lua/upload-hold.lua', import.meta.url));

/**
 * Keeps an upload's bytes until the job ends. Call before queueing; a job that never appears holds
 * nothing. False if the upload has expired.
 */
export async function holdUpload(redis: Redis, file: string, jobId: string): Promise<boolean> {
  return (await hold.run(redis, [recordKey(file), holdersKey(file)], [redisNow(), jobId])) === 1;
}

const held = loadScript(new URL('./lua/upload-is-held.lua', import.meta.url));

const withdraw = loadScript(new URL('./lua/upload-withdraw.lua', import.meta.url));

/** Makes the upload unknown at once. Its bytes stay until {@link eraseUpload}. */
export async function withdrawUpload(redis: Redis, file: string): Promise<void> {
  await withdraw.run(redis, [recordKey(file), INDEX], [file, countedKey('')]);
}

/**
 * Removes an expired or withdrawn upload, unless a job still holds it. The caller has its lease.
 * @param removeBytes called before the record is removed, so a crash leaves no unknown bytes
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

/** Whether there is a record of it, of any tenant and in any state. */
export async function isUploadKnown(redis: Redis, file: string): Promise<boolean> {
  return (await redis.exists(recordKey(file))) === 1;
}

/** Ids of expired uploads, oldest expiry first. */
export async function expiredUploads(redis: Redis, skip: number, count: number): Promise<string[]> {
  return redis.zrangebyscore(INDEX, '-inf', redisNow(), 'LIMIT', skip, count);
}

// State of an upload arriving in a bucket, in its record, under the upload's lease.

const FIELDS = ['multipart', 'arrivedBytes', 'tails'] as const;

const StoredState = z.object({
  multipart: z.string(),
  sizeBytes: z.coerce.number().int().nonnegative(),
  arrivedBytes: z.coerce.number().int().nonnegative(),
  tails: z.string().transform((text) => text.split(',').filter(Boolean).map(Number)),
});

type State = Readonly<z.infer<typeof StoredState>>;

interface Changes extends Partial<Pick<State, 'multipart' | 'arrivedBytes'>> {
  readonly tails?: readonly number[];
}

const note = loadScript(new URL('./lua/upload-state-note.lua', import.meta.url));

export class IncomingStates {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Undefined if the upload is not arriving. */
  async read(file: string): Promise<State | undefined> {
    return readRecord(this.#redis, file, StoredState);
  }

  async note(file: string, { multipart, arrivedBytes, tails }: Changes): Promise<void> {
    const fields = { multipart, arrivedBytes, tails: tails?.toString() };
    const given = Object.entries(fields).flatMap(([name, value]) =>
      value === undefined ? [] : [name, value],
    );
    await note.run(this.#redis, [recordKey(file)], given.map(String));
  }

  async forget(file: string): Promise<void> {
    await this.#redis.hdel(recordKey(file), ...FIELDS);
  }
}
