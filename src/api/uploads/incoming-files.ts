/**
 * The bytes of tus uploads that are not complete yet: files beside the storage, so that handing a complete one over is a
 * rename. Several API processes may share the folder.
 */
import { mkdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { FileStore } from '@tus/file-store';
import { MemoryKvStore } from '@tus/server';
import type { IncomingUploads, InTime, Storage } from 'soundpost-kit/storage/storage';
import { uploadStorageKey } from '../../jobs/uploads/record.ts';

export class IncomingFiles implements IncomingUploads {
  readonly #folder: string;
  readonly #storage: Storage;
  readonly #inTime: InTime;
  readonly #files: FileStore;

  /**
   * @param folder absolute; on the volume of the storage's files, else handing over is a copy
   * @param inTime limits what may also be done later without harm: not the bytes, and not cutting a file that others
   * may have written to by then
   */
  static async open(folder: string, storage: Storage, inTime: InTime): Promise<IncomingFiles> {
    // FileStore makes the folder itself, but readable for everybody.
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new IncomingFiles(folder, storage, inTime);
  }

  private constructor(folder: string, storage: Storage, inTime: InTime) {
    this.#folder = folder;
    this.#storage = storage;
    this.#inTime = inTime;
    // What FileStore would keep of an upload beside its bytes stands in Redis, where every process sees it.
    this.#files = new FileStore({ directory: folder, configstore: new MemoryKvStore() });
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
    return this.#files.write(content, file, offset);
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
