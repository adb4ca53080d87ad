/**
 * The bytes of tus uploads that are not complete yet: files beside the storage, so that handing a complete one over is a
 * rename. Several API processes may share the folder; who may touch a file is decided by its lease. A bucket would
 * have the same operations over @tus/s3-store, except for `truncate`: it would keep a checked chunk out of the
 * multipart upload until its checksum is known.
 */
import { mkdir, open, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { FileStore } from '@tus/file-store';
import { MemoryKvStore } from '@tus/server';
import type { Storage } from '../../storage/storage.ts';

/** Fails what is not done in time. */
type InTime = <Result>(operation: string, work: Promise<Result>) => Promise<Result>;

export class IncomingFiles {
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

  /** How much has arrived; undefined when there is no such file. */
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

  /** Appends what the stream gives. What had arrived before it failed stays. */
  async write(file: string, content: Readable, offset: number): Promise<number> {
    return this.#files.write(content, file, offset);
  }

  /** The first bytes, `count` at most. */
  async head(file: string, count: number): Promise<Buffer> {
    const handle = await open(this.#path(file), 'r');
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(count), 0, count, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  }

  async truncate(file: string, sizeBytes: number): Promise<void> {
    await truncate(this.#path(file), sizeBytes);
  }

  /** Gives the complete bytes to the storage, under the key; they are no longer here then. */
  async handOver(file: string, key: string): Promise<void> {
    await this.#storage.publish(this.#path(file), key);
  }

  /** Removing what is not there is no error. */
  async remove(file: string): Promise<void> {
    await this.#inTime('remove', rm(this.#path(file), { force: true }));
  }

  #path(file: string): string {
    return join(this.#folder, file);
  }
}
