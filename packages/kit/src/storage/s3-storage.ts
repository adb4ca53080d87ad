/**
 * Objects in a bucket of Amazon S3 or a compatible server. Larger ones are multipart uploads: whole
 * or not at all, with only a few parts in memory.
 */
import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import type { Inventory } from './inventory.ts';
import {
  abortAbandoned,
  bucketInventory,
  presignedDownloads,
  S3Bucket,
  type S3Options,
} from './s3-bucket.ts';
import { isNoUpload } from './s3-errors.ts';
import { S3Incoming } from './s3-incoming.ts';
import { partBytesFor } from './s3-parts.ts';
import { openObject } from './s3-reader.ts';
import {
  checkedKey,
  type DownloadAddress,
  type IncomingUploads,
  ObjectNotFound,
  type Storage,
  type StoredObject,
} from './storage.ts';

interface S3StorageOptions {
  /** Writes of unknown length get parts that suffice for this many bytes. */
  readonly largestWriteBytes: number;
}

/** Concurrent parts of one object, besides the one being filled. */
const PARTS_OF_A_STREAM = 2;
const PARTS_OF_A_FILE = 4;
const CHUNK_BYTES = 1024 * 1024;

/** Throws RangeError if S3 cannot store `largestWriteBytes`. */
export function createS3Storage(bucket: S3Bucket, { largestWriteBytes }: S3StorageOptions): Storage {
  const streamPartBytes = partBytesFor(largestWriteBytes);

  const stat = async (key: string): Promise<StoredObject | undefined> => {
    const sizeBytes = await bucket.sizeOf(checkedKey(key));
    return sizeBytes === undefined ? undefined : { key, sizeBytes };
  };

  return {
    stat,

    async publish(localPath, key) {
      checkedKey(key);
      const file = await lstat(localPath);
      if (!file.isFile()) throw new Error('only a regular file can be published');
      const content = createReadStream(localPath, { highWaterMark: CHUNK_BYTES });
      const object = await send(bucket, key, content, partBytesFor(file.size), PARTS_OF_A_FILE);
      await rm(localPath, { force: true });
      return object;
    },

    async write(key, content) {
      checkedKey(key);
      return send(bucket, key, content, streamPartBytes, PARTS_OF_A_STREAM);
    },

    read: async (key, range) => openObject(bucket, checkedKey(key), range),

    async localCopy(key, workspace, { signal, makeRoom } = {}) {
      const object = await stat(key);
      if (object === undefined) throw new ObjectNotFound(key);
      await makeRoom?.(object.sizeBytes);
      const path = join(workspace, basename(key));
      const content = await openObject(bucket, key);
      // The reader ends with its last byte or fails, so the copy is complete.
      await pipeline(content, createWriteStream(path, { mode: 0o600 }), signal ? { signal } : {});
      return path;
    },

    remove: async (key) => bucket.remove(checkedKey(key)),

    ping: (signal) => bucket.ping(signal),
  };
}

/** @param partBytes smaller content is sent in one request */
async function send(
  bucket: S3Bucket,
  key: string,
  content: Readable,
  partBytes: number,
  parts: number,
): Promise<StoredObject> {
  const source = new CountedSource(content);
  const writeId = randomUUID();
  const upload = new Upload({
    client: bucket.sending,
    params: { ...bucket.at(key), Body: source.stream, Metadata: { [WRITE_ID]: writeId } },
    partSize: partBytes,
    queueSize: parts,
    leavePartsOnError: false,
  });
  try {
    await bucket.ask('upload', upload.done());
  } catch (error) {
    if (source.failed) throw source.failure;
    if (!(await isThere(bucket, key, writeId, error))) throw error;
  }
  return { key, sizeBytes: source.countBytes };
}

/** Metadata that identifies the write of an object. */
const WRITE_ID = 'soundpost-write';

/** Whether the upload was completed but its answer lost; completing it again then fails. */
async function isThere(bucket: S3Bucket, key: string, writeId: string, error: unknown): Promise<boolean> {
  if (!(error instanceof Error && isNoUpload(error.cause))) return false;
  const found = await bucket.client.send(new HeadObjectCommand(bucket.at(key))).catch(() => undefined);
  return found?.Metadata?.[WRITE_ID] === writeId;
}

/** If the content itself fails, report its error rather than that of the upload. */
class CountedSource {
  readonly stream: Readable;
  countBytes = 0;
  failed = false;
  failure: unknown;

  constructor(content: Readable) {
    this.stream = Readable.from(this.#bytesOf(content), { objectMode: false });
  }

  async *#bytesOf(content: Readable): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of content) {
        const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
        this.countBytes += bytes.length;
        yield bytes;
      }
    } catch (error) {
      this.failed = true;
      this.failure = error;
      throw error;
    }
  }
}

// All uses of a bucket. Loaded only if there is one: the SDK takes 36 MB and a tenth of a second.

interface S3Service {
  readonly storage: Storage;
  readonly inventory: Inventory;
  /** Removes unfinished writes of this age; resolves to how many. */
  readonly sweep: (olderThanMs: number) => Promise<number>;
  /** Uploads in pieces. */
  readonly incoming: (options: ConstructorParameters<typeof S3Incoming>[1]) => IncomingUploads;
  readonly downloadAddress: DownloadAddress | undefined;
  close(): void;
}

/** @param publicEndpoint base address of the bucket for callers; unset: they cannot reach it */
export function openS3(
  options: S3Options & Parameters<typeof createS3Storage>[1],
  publicEndpoint: string | undefined,
): S3Service {
  const bucket = new S3Bucket(options);
  return {
    storage: createS3Storage(bucket, options),
    inventory: bucketInventory(bucket),
    sweep: (olderThanMs) => abortAbandoned(bucket, olderThanMs),
    incoming: (wanted) => new S3Incoming(bucket, wanted),
    downloadAddress: publicEndpoint === undefined ? undefined : presignedDownloads(bucket, publicEndpoint),
    close: () => bucket.close(),
  };
}
