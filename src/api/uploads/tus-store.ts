/**
 * The store of @tus/server: one tenant's uploads, during one request. Bytes gather in `incoming`;
 * the last one turns them into a complete upload. All of it happens under the upload's lease, so
 * the next request can finish what a dead process left.
 */
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { DataStore, ERRORS, Metadata, Upload as TusUpload } from '@tus/server';
import { ServiceError } from 'soundpost-contract/errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import { ObjectNotFound } from 'soundpost-kit/storage/storage';
import { bytesSource } from 'soundpost-media/sniff';
import {
  completeUpload,
  markUnchecked,
  readUpload,
  type Upload,
  uploadStorageKey,
} from '../../jobs/uploads/record.ts';
import { beginWithinBudget, cleanName, demandContainer, discardUpload, storedUpload } from '../intake.ts';
import type { ApiServices } from '../route.ts';
import type { Checksum } from './checksum.ts';
import { tusExtensions } from './tus-protocol.ts';

export class TusStore extends DataStore {
  readonly #services: ApiServices;
  readonly #tenant: string;
  readonly #checksum: Checksum | undefined;

  /** @param checksum of the request's bytes */
  constructor(services: ApiServices, tenant: string, checksum: Checksum | undefined) {
    super();
    this.extensions = tusExtensions;
    this.#services = services;
    this.#tenant = tenant;
    this.#checksum = checksum;
  }

  override async create(upload: TusUpload): Promise<TusUpload> {
    const { incoming } = this.#services;
    const sizeBytes = upload.size ?? 0;
    if (sizeBytes === 0) {
      await demandContainer(bytesSource(new Uint8Array()));
    }
    await beginWithinBudget(this.#services, {
      file: upload.id,
      tenant: this.#tenant,
      name: cleanName(upload.metadata?.filename ?? upload.metadata?.name ?? ''),
      sizeBytes,
      expiresAtMs: Date.parse(upload.creation_date ?? '') + this.getExpiration(),
      tusMetadata: upload.metadata && Metadata.stringify(upload.metadata),
    });
    await incoming.create(upload.id);
    return upload;
  }

  override async getUpload(file: string): Promise<TusUpload> {
    const upload = await this.#read(file);
    return new TusUpload({
      id: file,
      size: upload.sizeBytes,
      offset: upload.state === 'complete' ? upload.sizeBytes : await asGone(this.#offsetOf(upload)),
      ...(upload.tusMetadata === undefined ? {} : { metadata: Metadata.parse(upload.tusMetadata) }),
      // @tus/server counts an unfinished upload's expiry from here.
      creation_date: new Date(upload.expiresAtMs - this.getExpiration()).toISOString(),
    });
  }

  override async write(content: Readable, file: string, offset: number): Promise<number> {
    const upload = await this.#read(file);
    if (upload.state === 'complete') {
      await finished(content.resume());
      return offset;
    }
    return asGone(this.#append(upload, content, offset));
  }

  override async remove(file: string): Promise<void> {
    await discardUpload(this.#services, file);
  }

  override getExpiration(): number {
    return this.#services.settings.uploadTtlSeconds * 1000;
  }

  async #read(file: string): Promise<Upload> {
    const upload = await readUpload(this.#services.redis, this.#tenant, file);
    if (upload === undefined) {
      throw ERRORS.FILE_NOT_FOUND;
    }
    return upload;
  }

  /** The valid bytes of an incomplete upload, after repairing what a dead process left. */
  async #offsetOf(upload: Upload): Promise<number> {
    const { incoming, storage } = this.#services;
    const { file, sizeBytes, uncheckedFrom } = upload;
    const arrivedBytes = await incoming.sizeOf(file);
    if (arrivedBytes === undefined) {
      // Handed over, but not marked complete?
      const stored = await storage.stat(uploadStorageKey(file));
      if (stored?.sizeBytes !== sizeBytes) {
        throw ERRORS.FILE_NO_LONGER_EXISTS;
      }
      await this.#complete(upload);
      return sizeBytes;
    }
    if (uncheckedFrom !== undefined) {
      return this.#dropUnchecked(file, Math.min(uncheckedFrom, arrivedBytes));
    }
    if (arrivedBytes === sizeBytes) {
      await this.#finish(upload);
    }
    return arrivedBytes;
  }

  async #append(upload: Upload, content: Readable, offset: number): Promise<number> {
    const arrivedBytes = this.#checksum
      ? await this.#writeChecked(content, upload.file, offset, this.#checksum)
      : await this.#writePlain(content, upload.file, offset);
    if (arrivedBytes === upload.sizeBytes) {
      await this.#finish(upload);
    }
    return arrivedBytes;
  }

  /** Keeps partial bytes for a resume. On a full disk it truncates to free the space. */
  async #writePlain(content: Readable, file: string, offset: number): Promise<number> {
    const { incoming, disk } = this.#services;
    try {
      return await incoming.write(file, content, offset);
    } catch (error) {
      if (await disk.isLow()) {
        await incoming.truncate(file, offset);
      }
      throw error;
    }
  }

  /**
   * A chunk counts once complete with a matching checksum. Until then the record marks it
   * unchecked, and the next request drops it: after a mismatch, a broken connection or a crash.
   */
  async #writeChecked(content: Readable, file: string, offset: number, checksum: Checksum): Promise<number> {
    const { redis, incoming } = this.#services;
    await markUnchecked(redis, file, offset);
    const arrivedBytes = await incoming.write(file, checksum.over(content), offset);
    checksum.demandMatch();
    await markUnchecked(redis, file, undefined);
    return arrivedBytes;
  }

  async #dropUnchecked(file: string, offset: number): Promise<number> {
    await this.#services.incoming.truncate(file, offset);
    await markUnchecked(this.#services.redis, file, undefined);
    return offset;
  }

  async #finish(upload: Upload): Promise<void> {
    await this.#services.incoming.handOver(upload.file);
    await this.#complete(upload);
  }

  /** Throws INVALID_VIDEO and discards the upload if it is not media. */
  async #complete({ file, sizeBytes }: Upload): Promise<void> {
    const { storage, redis } = this.#services;
    try {
      await demandContainer(storedUpload(storage, file, sizeBytes));
    } catch (error) {
      if (error instanceof ServiceError) await discardUpload(this.#services, file);
      throw error;
    }
    const expiresAtMs = redisNow() + this.getExpiration();
    await completeUpload(redis, { file, sizeBytes, expiresAtMs });
  }
}

/** Bytes that vanished, for example by a bucket's lifecycle rule: the upload cannot be resumed. */
async function asGone<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof ObjectNotFound ? ERRORS.FILE_NO_LONGER_EXISTS : error;
  }
}
