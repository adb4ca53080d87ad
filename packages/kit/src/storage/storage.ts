/**
 * Stores finished files, uploads and chat media, on a disk or in an S3 bucket. Keys are relative
 * paths with forward slashes, such as `files/job_0123456789abcdef/3f2a.mp3`; only this service
 * makes them, never a caller.
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
  /** Moves a finished local file to `key`; the object appears whole or not at all. */
  publish(localPath: string, key: string): Promise<StoredObject>;

  /** Writes a stream to `key`; the object appears whole or not at all. */
  write(key: string, content: Readable): Promise<StoredObject>;

  /** The object's size; undefined if there is none. */
  stat(key: string): Promise<StoredObject | undefined>;

  /** The object's bytes, or a range of them. Throws {@link ObjectNotFound}. */
  read(key: string, range?: ByteRange): Promise<Readable>;

  /**
   * A local path of the object, for a program that needs one. A copy, if necessary, is put into
   * `workspace`. Throws {@link ObjectNotFound}.
   */
  localCopy(key: string, workspace: string, copying?: Copying): Promise<string>;

  /** Removes the object; no error if there is none. */
  remove(key: string): Promise<void>;

  /** Resolves if the storage answers, otherwise rejects. The signal may end it sooner. */
  ping(signal?: AbortSignal): Promise<void>;
}

/** For a storage that has to copy for a local path. */
interface Copying {
  /** Aborts the copy; the owner of the workspace removes what was copied. */
  readonly signal?: AbortSignal;
  /** Called with the object's size before the first byte is written. */
  readonly makeRoom?: (bytes: number) => Promise<void>;
}

/**
 * Makes a URL by which a caller fetches an object from the storage itself, without an API key, for
 * a short time. Does not check that the object exists.
 */
export type DownloadAddress = (key: string, served: Served) => Promise<string>;

/** Name and type of a download. */
interface Served {
  /** Values of response headers. */
  readonly contentDisposition: string;
  readonly contentType: string;
  readonly cacheControl: string;
}

/**
 * The storage cannot be used now, or not by us; the message says what to do. `code` is a file
 * system's code for that: EACCES, ECONNREFUSED, ETIMEDOUT, ENOSPC ….
 */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';
  readonly code: string;
  constructor(code: string, message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

export class ObjectNotFound extends Error {
  override readonly name = 'ObjectNotFound';
  constructor(key: string) {
    super(`no object is stored under ${key}`);
  }
}

// Valid keys, for every storage.

/**
 * Returns the key. Its plain segments lead neither outside a folder nor to a hidden file, and need
 * no encoding in a URL. @throws Error if it is invalid
 */
export function checkedKey(key: string): string {
  const plain = key.split('/').every((segment) => /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/.test(segment));
  if (!plain || key.length > 900) {
    throw new Error(
      `"${key}" is not a storage key: segments of A-Z a-z 0-9 . _ - with / between, none beginning with a dot`,
    );
  }
  return key;
}

// The bytes of uploads that arrive in pieces, over several requests and processes.

/** Fails work that is not done in time. */
export type InTime = <Result>(operation: string, work: Promise<Result>) => Promise<Result>;

/** The caller must hold the upload's lease. */
export interface IncomingUploads {
  /** Call this once, before anything else, after the upload's record was stored. */
  create(file: string): Promise<void>;

  /** How much has arrived; undefined if the upload is not here. */
  sizeOf(file: string): Promise<number | undefined>;

  /**
   * Appends a stream; resolves to how much has arrived in all. If the stream fails, what had
   * arrived stays. Throws ObjectNotFound if the upload is gone.
   * @param offset how much has arrived before
   */
  write(file: string, content: Readable, offset: number): Promise<number>;

  /** Drops the end of the last `write`, or all of it. @param sizeBytes what is left */
  truncate(file: string, sizeBytes: number): Promise<void>;

  /**
   * Turns the complete bytes into an object. Call this while `sizeOf` knows the upload, so again
   * after a crash. Throws ObjectNotFound if a bucket has lost the bytes.
   */
  handOver(file: string): Promise<void>;

  /** Removes an upload's bytes; no error if there are none. */
  remove(file: string): Promise<void>;
}
