/** What joins every kind of segment. */
import type { FileHandle } from 'node:fs/promises';
import type { Reading } from '../../reading/in-place.ts';
import type { SniffSource } from '../../sniff.ts';
import type { Segment } from '../presentation.ts';
import type { Sound } from '../segments/sound.ts';

export interface Output {
  write(bytes: Uint8Array): Promise<void>;
}

export interface Part {
  readonly segment: Segment;
  readonly file: FileHandle;
  /** The part of the file that is joined. */
  readonly sizeBytes: number;
  readonly sound: Sound;
  /** How much of its sound is not there. */
  readonly missingSeconds: number;
  readonly init: Uint8Array | undefined;
  /** For boxes that are large. */
  readonly reading: Reading;
}

/** Appends the segments of a kind, one after another. */
export interface Joiner {
  /** @throws {MediaFailure} when it is of another kind, or cannot follow those before it */
  append(part: Part, output: Output): Promise<void>;
  /**
   * Behind the last one.
   * @param path of the written file
   * @returns its size, bytes, if that has changed
   */
  finish?(path: string, makeRoom: (bytes: number) => Promise<void>): Promise<number | undefined>;
  /** Where the file begins in the presentation, seconds. */
  readonly startSeconds: number;
}

/** Returns fewer bytes at the end of the file. */
export async function readAt(file: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  let read = 0;
  while (read < bytes) {
    const { bytesRead } = await file.read(buffer, read, bytes - read, at + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return buffer.subarray(0, read);
}

export function fileSource(file: FileHandle, from: number, sizeBytes: number): SniffSource {
  return {
    sizeBytes: sizeBytes - from,
    read: (start, end) => readAt(file, from + start, end - start),
  };
}

const CHUNK_BYTES = 256 * 1024;

export async function copy(file: FileHandle, start: number, end: number, output: Output): Promise<void> {
  for (let at = start; at < end; at += CHUNK_BYTES) {
    await output.write(await readAt(file, at, Math.min(CHUNK_BYTES, end - at)));
  }
}
