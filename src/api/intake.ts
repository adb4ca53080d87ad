/** Receives files: claims disk space first, and checks the type while streaming to the storage. */

import type { Hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Request } from 'express';
import { ServiceError } from 'soundpost-contract/errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import { isDiskFull } from 'soundpost-kit/storage/disk-space';
import type { Storage } from 'soundpost-kit/storage/storage';
import {
  bytesSource,
  isHiddenByTags,
  SNIFF_BYTES,
  type SniffSource,
  sniffContainer,
} from 'soundpost-media/sniff';
import {
  beginUpload,
  completeUpload,
  eraseUpload,
  newUploadId,
  type Upload,
  uploadStorageKey,
  withdrawUpload,
} from '../jobs/uploads/record.ts';
import { LimitReached } from './limit-reached.ts';
import type { ApiServices, RouteContext } from './route.ts';

interface ReceivedFile {
  /** As sent, not yet cleaned. */
  readonly name: string;
  readonly content: Readable;
  /** Counts against the key's upload budget; omitted for a job's file, which job limits bound. */
  readonly announcedBytes?: number | undefined;
  /** Receives every byte that is stored. */
  readonly hash?: Hash | undefined;
}

const LONGEST_NAME = 200;
/** Longer than any request can take: an upload that arrives for longer is dead. */
const ARRIVES_WITHIN_MS = 12 * 60 * 60 * 1000;

/**
 * Stores a file as a complete upload of the tenant, or leaves nothing.
 * Throws INVALID_VIDEO for an unknown container, or what reading the content throws.
 */
export async function storeUpload(
  services: ApiServices,
  tenant: string,
  received: ReceivedFile,
): Promise<Upload> {
  const { storage, redis, settings } = services;
  const file = newUploadId();
  const name = cleanName(received.name);
  const { announcedBytes } = received;
  const begun = { file, tenant, name, expiresAtMs: redisNow() + ARRIVES_WITHIN_MS };
  await (announcedBytes === undefined
    ? beginUpload(redis, { ...begun, sizeBytes: 0 })
    : beginWithinBudget(services, { ...begun, sizeBytes: announcedBytes }));
  try {
    let isHidden = false;
    const checked = containersOnly(received, () => {
      isHidden = true;
    });
    const content = Readable.from(checked, { objectMode: false });
    const { sizeBytes } = await storage.write(uploadStorageKey(file), content);
    if (isHidden) await demandContainer(storedUpload(storage, file, sizeBytes));
    const expiresAtMs = redisNow() + settings.uploadTtlSeconds * 1000;
    await completeUpload(redis, { file, sizeBytes, expiresAtMs });
    return { file, tenant, name, sizeBytes, expiresAtMs, state: 'complete' };
  } catch (error) {
    await discardAfter(error, services, file);
    throw error;
  }
}

/**
 * Begins an upload that stays until it expires.
 * @throws LimitReached if the key's uploads exceed their number or total size
 */
export async function beginWithinBudget(
  { redis, settings }: ApiServices,
  upload: Omit<Upload, 'state'>,
): Promise<void> {
  const budget = { uploads: settings.uploadsPerKey, bytes: settings.uploadBytesPerKey };
  const over = await beginUpload(redis, upload, budget);
  if (over === undefined) return;
  const rule =
    over.limit === 'uploads'
      ? `this key may have ${budget.uploads} uploads`
      : `the uploads of this key may have ${budget.bytes} bytes in total`;
  const limit = over.limit === 'uploads' ? 'uploads' : 'upload_bytes';
  throw new LimitReached(limit, `${rule}; delete some, or wait until one expires`, over.retryAfterSeconds);
}

/**
 * Discards an unused upload after a failure. If Redis or the storage has failed, the answer does
 * not wait for them again; the janitor removes the rest.
 */
export async function discardAfter(error: unknown, services: ApiServices, file: string): Promise<void> {
  const discarded = discardUpload(services, file).catch(() => undefined);
  if (error instanceof ServiceError) {
    await discarded;
  }
}

/** Hides an upload at once; its bytes go now, or via the janitor while a job holds them. */
export async function discardUpload({ redis, storage, incoming }: ApiServices, file: string): Promise<void> {
  await withdrawUpload(redis, file);
  await eraseUpload(redis, file, async () => {
    await incoming.remove(file);
    await storage.remove(uploadStorageKey(file));
  });
}

/** Passes bytes on once their head proves a supported container, or tags hide what it is. */
async function* containersOnly(
  { content, hash }: ReceivedFile,
  onHidden: () => void,
): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of content) {
    hash?.update(chunk);
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length >= SNIFF_BYTES) {
      if (isHiddenByTags(head)) onHidden();
      else await demandContainer(bytesSource(head, Number.POSITIVE_INFINITY));
      yield head;
      head = undefined;
    }
  }
  if (head !== undefined) {
    await demandContainer(bytesSource(head));
    yield head;
  }
}

/** Throws INVALID_VIDEO. */
export async function demandContainer(source: SniffSource): Promise<void> {
  if ((await sniffContainer(source)) === undefined) {
    const { nameOther } = await import('soundpost-media/other-files');
    throw new ServiceError('INVALID_VIDEO', 'the file is not in a known video or audio format', {
      details: await nameOther(source),
    });
  }
}

export function storedUpload(storage: Storage, file: string, sizeBytes: number): SniffSource {
  return {
    sizeBytes,
    read: async (start, end) => buffer(await storage.read(uploadStorageKey(file), { start, end: end - 1 })),
  };
}

/** Removes folders, control and bidi characters: the name is shown and reused. */
export function cleanName(name: string): string {
  const base = name.split(/[/\\]/).at(-1) ?? '';
  const clean = base.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '').slice(0, LONGEST_NAME);
  return /^\.{0,2}$/.test(clean) ? 'upload' : clean;
}

export function uploadNotFound(): ServiceError {
  return new ServiceError('UPLOAD_NOT_FOUND', 'this key has no such upload, or it has expired');
}

/** Space is freed as jobs end and files expire, not within seconds. */
const RETRY_AFTER_SECONDS = 30;

/**
 * Reserves the request's space, against other requests of this process, while `take` receives it.
 * @param bytes default: the declared length; an undeclared one only requires an untouched reserve
 * @throws ServiceError SERVICE_UNAVAILABLE on a full disk; or what `take` throws
 */
export async function withRoom<Result>(
  { request, services }: RouteContext,
  take: () => Promise<Result>,
  bytes = Number(request.get('content-length') ?? 0),
): Promise<Result> {
  // Its reader rejects a body that is too large, so it claims nothing here.
  const isTooLarge = bytes > services.settings.maxInputBytes;
  const claim = await services.disk.tryClaim(isTooLarge ? 0 : bytes, arrivedBytes(request));
  if (claim === undefined) {
    throw noRoom();
  }
  try {
    return await take();
  } catch (error) {
    throw isDiskFull(error) ? noRoom(error) : error;
  } finally {
    claim.release();
  }
}

/** Bytes that have arrived count as written. */
function arrivedBytes({ socket }: Request): () => number {
  const before = socket.bytesRead;
  return () => socket.bytesRead - before;
}

function noRoom(cause?: unknown): ServiceError {
  return new ServiceError('SERVICE_UNAVAILABLE', 'there is not enough disk space to store the file', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
}
