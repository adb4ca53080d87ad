/**
 * Where finished files, uploads and chat media live: one interface, so that a machine's disk and an S3 bucket
 * are the same to everyone else. Keys are relative paths with forward slashes, such as
 * `files/job_0123456789abcdef/3f2a.mp3`; only this service makes them, never a caller.
 */
import type { Readable } from 'node:stream';

export interface StoredObject {
  readonly key: string;
  readonly sizeBytes: number;
}

export interface ByteRange {
  /** First byte, from 0. */
  readonly start: number;
  /** Last byte, inclusive. */
  readonly end: number;
}

export interface Storage {
  /** Takes over a finished local file under `key`; the object appears whole or not at all. The local file may be gone afterwards. */
  publish(localPath: string, key: string): Promise<StoredObject>;

  /** Writes a stream under `key`; the object appears whole or not at all. */
  write(key: string, content: Readable): Promise<StoredObject>;

  /** The object's size, or undefined when there is none. */
  stat(key: string): Promise<StoredObject | undefined>;

  /** The object's bytes, or a range of them. Throws {@link ObjectNotFound}. */
  read(key: string, range?: ByteRange): Promise<Readable>;

  /**
   * A local path that holds the object, for a program that needs one. `workspace` is where a copy may be put;
   * where the storage is local already, no copy is made. Throws {@link ObjectNotFound}.
   */
  localCopy(key: string, workspace: string): Promise<string>;

  /** Removes the object; removing what is not there is no error. */
  remove(key: string): Promise<void>;

  /** Resolves when the storage answers, rejects when it does not. */
  ping(): Promise<void>;
}

export class ObjectNotFound extends Error {
  override readonly name = 'ObjectNotFound';
  constructor(key: string) {
    super(`no object is stored under ${key}`);
  }
}
