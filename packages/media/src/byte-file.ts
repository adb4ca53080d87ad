/** Files read and written in order, in chunks: an hour takes no more memory than a second. */
import type { FileHandle } from 'node:fs/promises';

const CHUNK_BYTES = 256 * 1024;

/** Reads a file from a position on, as many bytes at a time as requested. */
export class ByteReader {
  readonly #file: FileHandle;
  #position: number;
  #held: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(file: FileHandle, position = 0) {
    this.#file = file;
    this.#position = position;
  }

  /** The next bytes without consuming them; fewer at the end. Later reads leave them intact. */
  async peek(bytes: number): Promise<Buffer> {
    while (this.#held.length - this.#at < bytes && (await this.#fill())) {
      // until there are enough
    }
    return this.#held.subarray(this.#at, this.#at + bytes);
  }

  skip(bytes: number): void {
    this.#at += bytes;
  }

  async #fill(): Promise<boolean> {
    // A new buffer each time: packets that were given out are views of the old one.
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const { bytesRead } = await this.#file.read(chunk, 0, CHUNK_BYTES, this.#position);
    if (bytesRead === 0) return false;
    this.#position += bytesRead;
    this.#held = Buffer.concat([this.#held.subarray(this.#at), chunk.subarray(0, bytesRead)]);
    this.#at = 0;
    return true;
  }
}

export class ByteWriter {
  readonly #file: FileHandle;
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async write(bytes: Buffer): Promise<void> {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#heldBytes >= CHUNK_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    const bytes = Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    for (let at = 0; at < bytes.length; ) {
      at += (await this.#file.write(bytes, at, bytes.length - at)).bytesWritten;
    }
  }
}
