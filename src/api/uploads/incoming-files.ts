/**
 * Bytes of incomplete tus uploads, kept as files beside the storage: completing one is a rename.
 * Several API processes can share the folder.
 */
import { createWriteStream } from 'node:fs';
import { mkdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ServiceError } from 'soundpost-contract/errors';
import type { IncomingUploads, InTime, Storage } from 'soundpost-kit/storage/storage';
import { uploadStorageKey } from '../../jobs/uploads/record.ts';

const RETRY_AFTER_SECONDS = 2;

export class IncomingFiles implements IncomingUploads {
  readonly #folder: string;
  readonly #storage: Storage;
  readonly #inTime: InTime;

  /**
   * @param folder absolute; on the volume of the storage's files, or completing one is a copy
   * @param inTime a deadline for what can safely happen later too: not for bytes, nor for
   *   truncating a file that others may have written to since
   */
  static async open(folder: string, storage: Storage, inTime: InTime): Promise<IncomingFiles> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new IncomingFiles(folder, storage, inTime);
  }

  private constructor(folder: string, storage: Storage, inTime: InTime) {
    this.#folder = folder;
    this.#storage = storage;
    this.#inTime = inTime;
  }

  async create(file: string): Promise<void> {
    await this.#inTime('create', writeFile(this.#path(file), '', { flag: 'wx', mode: 0o600 }));
  }

  async sizeOf(file: string): Promise<number | undefined> {
    try {
      return (await this.#inTime('stat', stat(this.#path(file)))).size;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
        return undefined;
      }
      throw error;
    }
  }

  async write(file: string, content: Readable, offset: number): Promise<number> {
    const target = createWriteStream(this.#path(file), { flags: 'r+', start: offset });
    try {
      await pipeline(content, target);
    } catch (cause) {
      const retryAfterSeconds = RETRY_AFTER_SECONDS;
      throw new ServiceError('SERVICE_UNAVAILABLE', 'the bytes could not be stored', {
        retryAfterSeconds,
        cause,
      });
    }
    return offset + target.bytesWritten;
  }

  async truncate(file: string, sizeBytes: number): Promise<void> {
    await truncate(this.#path(file), sizeBytes);
  }

  async handOver(file: string): Promise<void> {
    await this.#storage.publish(this.#path(file), uploadStorageKey(file));
  }

  async remove(file: string): Promise<void> {
    await this.#inTime('remove', rm(this.#path(file), { force: true }));
  }

  #path(file: string): string {
    return join(this.#folder, file);
  }
}
