/**
 * Where the S3 server of the tests keeps what it is given. s3rver's own store writes in place and
 * answers before the bytes are there; S3 does neither, so it gets this one: a blob is a file that
 * never changes, and a key points to one (Amazon S3, "strong consistency").
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import S3Bucket from 's3rver/lib/models/bucket.js';
import S3Error from 's3rver/lib/models/error.js';
import S3Object from 's3rver/lib/models/object.js';

interface Blob {
  readonly path: string;
  readonly size: number;
  readonly md5: string;
  readonly modified: Date;
  /** Headers that were given with it. */
  readonly metadata: Readonly<Record<string, string>>;
}

export interface Unfinished {
  readonly key: string;
  readonly uploadId: string;
  begun: Date;
  readonly metadata: Readonly<Record<string, string>>;
  readonly parts: Map<number, Blob>;
}

function metadataOf({ metadata, md5, size, modified }: Blob): Record<string, string | number> {
  return {
    ...metadata,
    etag: `"${md5}"`,
    'content-length': size,
    'last-modified': modified.toUTCString(),
    'content-type': 'application/octet-stream',
  };
}

export class BlobStore {
  /** Of all parts but the last. */
  leastPartBytes = 5 * 1024 * 1024;
  readonly #folder: string;
  readonly #bucket: string;
  readonly #objects = new Map<string, Blob>();
  readonly #unfinished = new Map<string, Unfinished>();
  readonly #keeping = new Set<Promise<Blob>>();

  /** @param bucket the only one there is */
  constructor(folder: string, bucket: string) {
    this.#folder = folder;
    this.#bucket = bucket;
  }

  keys(): string[] {
    return [...this.#objects.keys()];
  }

  unfinished(): Unfinished[] {
    return [...this.#unfinished.values()];
  }

  etagOf(key: string): string | undefined {
    const blob = this.#objects.get(key);
    return blob && `"${blob.md5}"`;
  }

  /** Throws NoSuchUpload. */
  uploadOf(uploadId: string | undefined): Unfinished {
    const found = this.#unfinished.get(uploadId ?? '');
    if (found === undefined) {
      throw new S3Error('NoSuchUpload', 'The specified multipart upload does not exist.');
    }
    return found;
  }

  abort(uploadId: string | undefined): void {
    this.#unfinished.delete(this.uploadOf(uploadId).uploadId);
  }

  /** Resolves when nothing is written any more. */
  async settled(): Promise<void> {
    while (this.#keeping.size > 0) await Promise.allSettled(this.#keeping);
  }

  // From here on what s3rver's controllers call.

  async getBucket(name: string): Promise<S3Bucket | null> {
    return name === this.#bucket ? new S3Bucket(name, new Date(0)) : null;
  }

  async listBuckets(): Promise<S3Bucket[]> {
    return [new S3Bucket(this.#bucket, new Date(0))];
  }

  async getSubresource(): Promise<null> {
    return null;
  }

  async existsObject(_bucket: string, key: string): Promise<boolean> {
    return this.#objects.has(key);
  }

  /** All on one page. */
  async listObjects(
    bucket: string,
    { prefix = '', delimiter = '' }: { readonly prefix?: string; readonly delimiter?: string },
  ): Promise<{ objects: S3Object[]; commonPrefixes: string[]; isTruncated: false }> {
    const commonPrefixes = new Set<string>();
    const objects: S3Object[] = [];
    for (const key of this.keys().sort()) {
      if (!key.startsWith(prefix)) continue;
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      const blob = this.#objects.get(key);
      if (end >= 0) commonPrefixes.add(key.slice(0, end + 1));
      else if (blob !== undefined) objects.push(new S3Object(bucket, key, null, metadataOf(blob)));
    }
    return { objects, commonPrefixes: [...commonPrefixes], isTruncated: false };
  }

  async getObject(
    bucket: string,
    key: string,
    wanted?: { readonly start?: number; readonly end?: number },
  ): Promise<S3Object | null> {
    const blob = this.#objects.get(key);
    if (blob === undefined) return null;
    const isRange = wanted?.start !== undefined;
    const range = { start: wanted?.start ?? 0, end: Math.min(wanted?.end ?? Infinity, blob.size - 1) };
    const metadata = metadataOf(blob);
    const isEmpty = range.start > range.end;
    const content = isEmpty ? (isRange ? null : Readable.from([])) : await reading(blob.path, range);
    const object = new S3Object(bucket, key, content, metadata);
    if (isRange) object.range = range;
    return object;
  }

  async putObject({ key, content, metadata }: S3Object): Promise<Blob> {
    const blob = await this.#keep(content);
    this.#objects.set(key, { ...blob, metadata });
    return blob;
  }

  async deleteObject(_bucket: string, key: string): Promise<void> {
    this.#objects.delete(key);
  }

  async initiateUpload(
    _bucket: string,
    key: string,
    uploadId: string,
    metadata: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    this.#unfinished.set(uploadId, { key, uploadId, begun: new Date(), metadata, parts: new Map() });
  }

  async putPart(_bucket: string, uploadId: string, partNumber: string, content: Readable): Promise<Blob> {
    const upload = this.uploadOf(uploadId);
    const blob = await this.#keep(content);
    // It may have been aborted meanwhile.
    this.uploadOf(uploadId);
    upload.parts.set(Number(partNumber), blob);
    return blob;
  }

  async putObjectMultipart(
    _bucket: string,
    uploadId: string,
    listed: readonly { readonly number: number; readonly etag: string }[],
  ): Promise<Blob> {
    const { key, parts, metadata } = this.uploadOf(uploadId);
    const blobs = listed.map(({ number, etag }, index) => {
      const blob = parts.get(number);
      if (blob?.md5 !== etag)
        throw new S3Error('InvalidPart', 'One or more of the parts could not be found.');
      if (number <= (listed[index - 1]?.number ?? 0)) {
        throw new S3Error('InvalidPartOrder', 'The list of parts was not in ascending order.');
      }
      if (blob.size < this.leastPartBytes && index < listed.length - 1) {
        throw new S3Error('EntityTooSmall', 'Your proposed upload is smaller than the minimum allowed size');
      }
      return blob;
    });
    const whole = await this.#keep(Readable.from(joined(blobs), { objectMode: false }));
    // S3's tag of an object in parts says how many there are.
    const object = { ...whole, metadata, md5: `${whole.md5}-${blobs.length}` };
    this.#objects.set(key, object);
    this.#unfinished.delete(uploadId);
    return object;
  }

  async #keep(content: Readable): Promise<Blob> {
    const keeping = this.#write(content);
    this.#keeping.add(keeping);
    try {
      return await keeping;
    } finally {
      this.#keeping.delete(keeping);
    }
  }

  /**
   * Whole, or not at all: a body that ends early makes nothing, and one that is not what was signed
   * is refused.
   */
  async #write(content: Readable): Promise<Blob> {
    const path = join(this.#folder, randomUUID());
    const [md5, sha256] = [createHash('md5'), createHash('sha256')];
    let size = 0;
    const hashed = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        md5.update(chunk);
        sha256.update(chunk);
        size += chunk.length;
        yield chunk;
      }
    };
    await pipeline(content, hashed, createWriteStream(path));
    const signed =
      'headers' in content ? (content as IncomingMessage).headers['x-amz-content-sha256'] : undefined;
    if (signed !== undefined && signed !== 'UNSIGNED-PAYLOAD' && signed !== sha256.digest('hex')) {
      throw new S3Error('XAmzContentSHA256Mismatch', 'The bytes are not those that were signed');
    }
    return { path, size, md5: md5.digest('hex'), modified: new Date(), metadata: {} };
  }
}

/** Opened before anything is said of it. */
async function reading(
  path: string,
  range: { readonly start: number; readonly end: number },
): Promise<Readable> {
  const file = await open(path);
  return createReadStream(path, { fd: file, ...range });
}

async function* joined(blobs: readonly Blob[]): AsyncGenerator<Buffer> {
  for (const { path } of blobs) yield* createReadStream(path);
}
