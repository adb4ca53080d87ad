/** Bytes of a file on the disk, here and there: heads of boxes, clusters and chunks. */
import { type FileHandle, open } from 'node:fs/promises';
import { NotInPlace } from './reading/in-place.ts';

/** As many are read at least: small boxes lie side by side. */
const WINDOW_BYTES = 4096;
/** A read takes as long as so many bytes. */
const READ_BYTES = 512;
const NO_BYTES = Buffer.alloc(0);

export class LocalBytes implements AsyncDisposable {
  readonly #file: FileHandle;
  #leftBytes: number;
  #held: Buffer = NO_BYTES;
  #heldAt = 0;

  /** @param mostBytes that may be read; default: any number */
  constructor(file: FileHandle, mostBytes = Number.POSITIVE_INFINITY) {
    this.#file = file;
    this.#leftBytes = mostBytes;
  }

  /** As the constructor. */
  static async open(path: string, mostBytes?: number): Promise<LocalBytes> {
    return new LocalBytes(await open(path, 'r'), mostBytes);
  }

  /**
   * @param position as a file's own tables say: none where no file can have bytes, such as 2^60
   * @returns fewer where the file ends; later reads leave them intact
   * @throws {NotInPlace} beyond the limit, before it reads
   */
  async at(position: number, length: number): Promise<Buffer> {
    if (position < 0 || !Number.isSafeInteger(position)) return NO_BYTES;
    const from = position - this.#heldAt;
    if (from >= 0 && from + length <= this.#held.length) return this.#held.subarray(from, from + length);
    this.#leftBytes -= Math.max(length, READ_BYTES);
    if (this.#leftBytes < 0) throw new NotInPlace();
    const wanted = Math.max(length, WINDOW_BYTES);
    const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(wanted), 0, wanted, position);
    this.#held = buffer.subarray(0, bytesRead);
    this.#heldAt = position;
    return this.#held.subarray(0, length);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}
