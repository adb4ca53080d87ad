/**
 * The first request for a source: the whole file as a range. What a server answers tells whether parts can be asked
 * for, and the beginning of its body is the beginning of the file whatever is decided then.
 */
import { Readable } from 'node:stream';
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

/** @throws OutboundRefused, OutboundFailed; the reason of `signal` when that aborts */
export async function openSource(
  route: Route,
  url: string,
  limits: RangeLimits,
  signal: AbortSignal,
): Promise<{ answer: Answer; waitedSeconds: number }> {
  const begunAt = performance.now();
  const answer = await get(route, { ...limits, url, headers: { range: 'bytes=0-' }, signal });
  return { answer, waitedSeconds: (performance.now() - begunAt) / 1_000 };
}

/** @returns what later requests need; undefined when parts of this file cannot be asked for, or not safely */
export function remoteFileOf({ status, headers, url }: Answer): RemoteFile | undefined {
  if (status !== 206 || isEncoded(headers)) return undefined;
  const range = contentRangeOf(headers);
  const validator = strongValidator(headers);
  const isWhole = range?.start === 0 && range.end === range.totalBytes;
  return isWhole && validator !== undefined ? { url: url.href, sizeBytes: range.end, validator } : undefined;
}

/**
 * The answer as one to a request for the whole file. @returns undefined when it holds less than that, or refuses the
 * range itself: then the file has to be asked for once more
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

/** The body of the first answer, read as far as it is wanted. */
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

  /** How much of the file there is. */
  get readBytes(): number {
    return this.#readBytes;
  }

  /** From the answer's headers to its last bytes so far. */
  get seconds(): number {
    return Math.max(0, this.#lastAt - this.#begunAt) / 1_000;
  }

  /** Whether what is left of the body can still be read. */
  get isWhole(): boolean {
    return !this.#isBroken;
  }

  /** Reads on until so many bytes are there. @throws OutboundFailed; the signal's reason */
  async readTo(end: number): Promise<void> {
    while (this.#readBytes < end) {
      const { value, done } = await this.#next();
      if (done) throw new OutboundFailed('reset', 'the connection broke before the end', true);
      this.#chunks.push(value);
      this.#readBytes += value.length;
      this.#lastAt = performance.now();
    }
  }

  /** What has been read, as one buffer. */
  bytes(): Uint8Array {
    if (this.#chunks.length > 1) this.#chunks.splice(0, this.#chunks.length, Buffer.concat(this.#chunks));
    return this.#chunks[0] ?? new Uint8Array();
  }

  /** All of the body from its first byte on, for whoever wants the file whole. */
  asBody(): Readable {
    return Readable.from(this.#replay(), { objectMode: false });
  }

  /** Breaks the answer off, and its connection. */
  async drop(): Promise<void> {
    this.#isBroken = true;
    // Nothing that has not been begun is ended by its return.
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
