/** Writes pieces of an answer to their places in a local file. */
import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { Piece } from './ranges-multipart.ts';

/** What the pieces of a chunk, 64 KiB at the most, may take; from memory to memory it is a tenth of it. */
const SLOW_MS = 20;

/**
 * Small writes go into the system's memory in microseconds, and a trip to another thread for each of them takes longer. A disk that is
 * behind makes the writer wait, which nothing else in this process shall: after a chunk that took too long, for whatever reason, other
 * threads write. docs/decisions/0010-sparse-fetch.md
 */
export class PieceWriter {
  readonly #file: FileHandle;
  #usesThreads = false;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Resolves when all are written. @throws what the file system fails with */
  async write(pieces: readonly Piece[]): Promise<void> {
    if (this.#usesThreads) {
      await Promise.all(pieces.map((piece) => this.#writeInThread(piece)));
      return;
    }
    const begunAt = performance.now();
    for (const piece of pieces) this.#writeNow(piece);
    this.#usesThreads = performance.now() - begunAt > SLOW_MS;
  }

  // A write may take fewer bytes than it was given.

  #writeNow({ start, bytes }: Piece): void {
    for (let at = 0; at < bytes.length; ) {
      at += writeSync(this.#file.fd, bytes, at, bytes.length - at, start + at);
    }
  }

  async #writeInThread({ start, bytes }: Piece): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      at += (await this.#file.write(bytes, at, bytes.length - at, start + at)).bytesWritten;
    }
  }
}
