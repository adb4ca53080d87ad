/** An object on its way from the bucket. A connection that breaks or stands still in the middle is replaced, from the byte where it broke. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { GetObjectCommand } from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket.ts';
import { hasStatus, isMissing } from './s3-errors.ts';
import { type ByteRange, ObjectNotFound } from './storage.ts';

/** Connections in a row that may break without one byte having come. */
const VAIN_TRIES = 4;
const PAUSE_MS = 200;

interface Opened {
  readonly body: Readable;
  readonly etag: string | undefined;
  readonly sizeBytes: number;
}

interface Wanted {
  readonly range?: ByteRange | undefined;
  /** The object must still be the one that has this tag. */
  readonly etag?: string | undefined;
  readonly signal?: AbortSignal;
}

/** The bytes, once the server has begun to send them. Throws {@link ObjectNotFound}. */
export async function openObject(bucket: S3Bucket, key: string, range?: ByteRange): Promise<Readable> {
  let first: Opened;
  try {
    first = await get(bucket, key, { range });
  } catch (error) {
    // An empty object has no range that could be satisfied; a file has none of its bytes in it.
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

/** As Readable.from makes one, but destroyed at once: that one waits until the chunk has come that it was waiting for. */
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
    // The SDK has sent the request several times by itself.
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
      `the server was asked for bytes ${range.start}-${range.end} of ${key} and has sent ${ContentRange ?? 'all of it'}; see what is between it and the service`,
    );
  }
  return { body: Body, etag: ETag, sizeBytes: ContentLength };
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

/** Whether this is the range that was asked for, or what there is of it (RFC 9110, 14.4). */
function isOf(contentRange: string | undefined, { start, end }: ByteRange): boolean {
  const [, first, last] = /^bytes (\d+)-(\d+)\//.exec(contentRange ?? '') ?? [];
  return Number(first) === start && Number(last) <= end;
}
