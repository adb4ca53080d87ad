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
  localCopy(key: string, workspace: string, copying?: Copying): Promise<string>;

  /** Removes the object; removing what is not there is no error. */
  remove(key: string): Promise<void>;

  /** Resolves when the storage answers, rejects when it does not. The signal may end it sooner. */
  ping(signal?: AbortSignal): Promise<void>;
}

/** For a storage that has to copy before there is a local path. */
interface Copying {
  /** Gives the copy up; what was copied is left to whoever owns the workspace. */
  readonly signal?: AbortSignal;
  /** Called with the object's size before the first byte is written. */
  readonly makeRoom?: (bytes: number) => Promise<void>;
}

/**
 * Makes an address at which a caller fetches an object from the storage itself, without a key of ours, for a few minutes. Says nothing of
 * whether the object is there.
 */
export type DownloadAddress = (key: string, served: Served) => Promise<string>;

/** How a download is to be named and typed. */
interface Served {
  /** Values of the headers of the answer. */
  readonly contentDisposition: string;
  readonly contentType: string;
  readonly cacheControl: string;
}

/**
 * A storage that cannot be used now, or not by us: the message says which and what the operator can do.
 * `code` is the one that a file system has for it: EACCES, ECONNREFUSED, ETIMEDOUT, ENOSPC ….
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

// What a key may look like, whatever storage it is for.

/**
 * The key as it is. A key is made of plain segments, so that none leads outside a folder or to a hidden file, and none has to be encoded in a URL.
 * @throws Error when it is none
 */
export function checkedKey(key: string): string {
  const plain = key.split('/').every((segment) => /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/.test(segment));
  if (!plain || key.length > 900) {
    throw new Error(
      `"${key}" is no storage key: segments of A-Z a-z 0-9 . _ - with / between, none beginning with a dot`,
    );
  }
  return key;
}

// The bytes of uploads that arrive in pieces, over several requests and processes, before they are
// objects.

/** Fails what is not done in time. */
export type InTime = <Result>(operation: string, work: Promise<Result>) => Promise<Result>;

/** Who may touch an upload is decided by its lease, which the caller has. */
export interface IncomingUploads {
  /** To be called once, before anything else; the upload's record is there by then. */
  create(file: string): Promise<void>;

  /** How much has arrived; undefined when it is not here, or no longer. */
  sizeOf(file: string): Promise<number | undefined>;

  /**
   * Appends what the stream gives; resolves to how much has arrived in all. What had arrived before the stream failed stays.
   * Throws ObjectNotFound when the upload is not here any more.
   * @param offset how much has arrived before
   */
  write(file: string, content: Readable, offset: number): Promise<number>;

  /** Forgets what the last `write` has brought, or the end of it. @param sizeBytes what is left */
  truncate(file: string, sizeBytes: number): Promise<void>;

  /**
   * Makes an object of the complete bytes; they are no longer here then. To be called while `sizeOf` knows the upload, so again after a
   * death in the middle. Throws ObjectNotFound when a bucket has lost them by itself meanwhile.
   */
  handOver(file: string): Promise<void>;

  /** Removes what is here of an upload; removing what is not here is no error. */
  remove(file: string): Promise<void>;
}
