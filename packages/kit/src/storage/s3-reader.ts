/** Reads an object from the bucket. A broken or stalled connection is replaced where it broke. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { GetObjectCommand } from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket.ts';
import { hasStatus, isMissing } from './s3-errors.ts';
import { type ByteRange, ObjectNotFound } from './storage.ts';

/** Broken connections in a row without a byte. */
const VAIN_TRIES = 4;
const PAUSE_MS = 200;

interface Opened {
  readonly body: Readable;
  readonly etag: string | undefined;
  readonly sizeBytes: number;
}

interface Wanted {
  readonly range?: ByteRange | undefined;
  /** The object's ETag must still match. */
  readonly etag?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Resolves once the server has begun to send the bytes. Throws {@link ObjectNotFound}. */
export async function openObject(bucket: S3Bucket, key: string, range?: ByteRange): Promise<Readable> {
  let first: Opened;
  try {
    first = await get(bucket, key, { range });
  } catch (error) {
    // 416: an empty object has no valid range, but for a file that is no error.
    if (hasStatus(causeOf(error), 416)) return Readable.from([]);
    throw error;
  }
  const closing = new AbortController();
  let current = first.body;
  const content = resuming(first, range?.start ?? 0, closing.signal, async (etag, rest) => {
    const next = await get(bucket, key, { range: rest, etag, signal: closing.signal });
    current = next.body;
    return current;
  });
  return new ObjectReader(content, () => {
    closing.abort();
    current.destroy();
  });
}

/** Like Readable.from, but destroyed at once: that one first waits for a pending chunk. */
class ObjectReader extends Readable {
  readonly #content: AsyncGenerator<Buffer>;
  readonly #stop: () => void;

  constructor(content: AsyncGenerator<Buffer>, stop: () => void) {
    super();
    this.#content = content;
    this.#stop = stop;
  }

  override _read(): void {
    this.#content.next().then(
      ({ done, value }) => this.push(done ? null : value),
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    );
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#stop();
    callback(error);
  }
}

async function* resuming(
  first: Opened,
  start: number,
  closed: AbortSignal,
  open: (etag: string | undefined, rest: ByteRange) => Promise<Readable>,
): AsyncGenerator<Buffer> {
  const end = start + first.sizeBytes - 1;
  let position = start;
  let body: Readable | undefined = first.body;
  for (let vain = 0; ; vain += 1) {
    // The SDK has already retried the request itself.
    body ??= await open(first.etag, { start: position, end });
    try {
      for await (const chunk of body) {
        position += chunk.length;
        vain = 0;
        yield chunk;
      }
      if (position > end) return;
      throw Object.assign(new Error('the object ended before its last byte'), { code: 'ECONNRESET' });
    } catch (error) {
      if (closed.aborted) return;
      if (vain >= VAIN_TRIES) throw error;
    }
    body = undefined;
    await sleep(PAUSE_MS * 2 ** vain, undefined, { signal: closed }).catch(() => undefined);
  }
}

async function get(bucket: S3Bucket, key: string, { range, etag, signal }: Wanted): Promise<Opened> {
  const command = new GetObjectCommand({
    ...bucket.at(key),
    ...(range === undefined ? {} : { Range: `bytes=${range.start}-${range.end}` }),
    ...(etag === undefined ? {} : { IfMatch: etag }),
  });
  const asking = bucket.reading
    .send(command, signal === undefined ? {} : { abortSignal: signal })
    .catch((error: unknown) => {
      throw isMissing(error) ? new ObjectNotFound(key) : error;
    });
  const { Body, ETag, ContentLength, ContentRange } = await bucket.ask('GetObject', asking);
  if (!(Body instanceof Readable) || ContentLength === undefined) {
    throw new Error(`the server has sent ${key} without its length`);
  }
  if (range !== undefined && !isOf(ContentRange, range)) {
    Body.destroy();
    throw new Error(
      `the server was asked for bytes ${range.start}-${range.end} of ${key} and has sent ${ContentRange ?? 'all of it'}; check for a proxy between it and the service`,
    );
  }
  return { body: Body, etag: ETag, sizeBytes: ContentLength };
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

/** Whether this is the requested range, or the existing part of it (RFC 9110, 14.4). */
function isOf(contentRange: string | undefined, { start, end }: ByteRange): boolean {
  const [, first, last] = /^bytes (\d+)-(\d+)\//.exec(contentRange ?? '') ?? [];
  return Number(first) === start && Number(last) <= end;
}
