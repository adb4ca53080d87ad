/**
 * The first request for a source asks for the whole file as a range. The answer shows whether the
 * server supports ranges, and its body is the beginning of the file in any case.
 */
import { Readable } from 'node:stream';
import type { DownloadOptions } from './download.ts';
import { OutboundFailed } from './errors.ts';
import {
  type Answer,
  type BodyLimits,
  contentRangeOf,
  discard,
  get,
  isEncoded,
  limitedBody,
  type Route,
  strongValidator,
} from './exchange.ts';
import type { RangeLimits, RemoteFile } from './ranges-request.ts';

/** @throws OutboundRefused, OutboundFailed; the reason of `signal` if it aborts */
export async function openSource(
  route: Route,
  { url, originHeaders }: Pick<DownloadOptions, 'url' | 'originHeaders'>,
  limits: RangeLimits,
  signal: AbortSignal,
): Promise<{ answer: Answer; waitedSeconds: number }> {
  const begunAt = performance.now();
  const headers = { range: 'bytes=0-' };
  const answer = await get(route, { ...limits, url, originHeaders, headers, signal });
  return { answer, waitedSeconds: (performance.now() - begunAt) / 1_000 };
}

/** @returns data for later requests; undefined if parts of this file cannot be requested safely */
export function remoteFileOf({ status, headers, url, originHeaders }: Answer): RemoteFile | undefined {
  if (status !== 206 || isEncoded(headers)) return undefined;
  const range = contentRangeOf(headers);
  const validator = strongValidator(headers);
  const isWhole = range?.start === 0 && range.end === range.totalBytes;
  if (!isWhole || validator === undefined) return undefined;
  return { url: url.href, originHeaders, sizeBytes: range.end, validator };
}

/**
 * Treats the answer as one for the whole file. @returns undefined if it has only a part or refuses
 * the range: then request the file again
 */
export function asWholeAnswer(answer: Answer): Answer | undefined {
  const range = contentRangeOf(answer.headers);
  if (answer.status === 206 && range?.start === 0 && range.end === range.totalBytes) {
    return { ...answer, status: 200 };
  }
  if (answer.status !== 206 && answer.status !== 416) return answer;
  discard(answer.body);
  return undefined;
}

/** The body of the first answer, read as far as needed. */
export class Beginning {
  readonly #source: Readable;
  readonly #body: AsyncGenerator<Uint8Array>;
  readonly #chunks: Uint8Array[] = [];
  readonly #begunAt = performance.now();
  #lastAt = 0;
  #readBytes = 0;
  #isBroken = false;

  constructor(answer: Answer, limits: BodyLimits, signal: AbortSignal) {
    this.#source = answer.body;
    this.#body = limitedBody(answer.body, limits, signal);
  }

  /** Bytes read so far. */
  get readBytes(): number {
    return this.#readBytes;
  }

  /** From the answer's headers to its last bytes so far. */
  get seconds(): number {
    return Math.max(0, this.#lastAt - this.#begunAt) / 1_000;
  }

  /** Whether the rest of the body can still be read. */
  get isWhole(): boolean {
    return !this.#isBroken;
  }

  /** Reads up to this position. @throws OutboundFailed; the signal's reason */
  async readTo(end: number): Promise<void> {
    while (this.#readBytes < end) {
      const { value, done } = await this.#next();
      if (done) throw new OutboundFailed('reset', 'the connection broke before the end', true);
      this.#chunks.push(value);
      this.#readBytes += value.length;
      this.#lastAt = performance.now();
    }
  }

  /** All bytes read, as one buffer. */
  bytes(): Uint8Array {
    if (this.#chunks.length > 1) this.#chunks.splice(0, this.#chunks.length, Buffer.concat(this.#chunks));
    return this.#chunks[0] ?? new Uint8Array();
  }

  /** The whole body from its first byte. */
  asBody(): Readable {
    return Readable.from(this.#replay(), { objectMode: false });
  }

  /** Aborts the answer and its connection. */
  async drop(): Promise<void> {
    this.#isBroken = true;
    // `return` does not end a generator that has not started.
    discard(this.#source);
    await this.#body.return(undefined);
  }

  async #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    try {
      const next = await this.#body.next();
      if (next.done) this.#isBroken = true;
      return next;
    } catch (error) {
      this.#isBroken = true;
      throw error;
    }
  }

  async *#replay(): AsyncGenerator<Uint8Array> {
    for (let chunk = this.#chunks.shift(); chunk !== undefined; chunk = this.#chunks.shift()) yield chunk;
    yield* this.#body;
  }
}
