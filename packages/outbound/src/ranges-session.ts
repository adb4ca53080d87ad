/** Concurrent range requests for one version of a file, written to a local file. */
import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { OutboundFailed } from './errors.ts';
import type { Route } from './exchange.ts';
import { isWorthwhile, type LinkMeter, type RangeMode, rangeModes, worthwhileGap } from './ranges-cost.ts';
import type { Piece } from './ranges-multipart.ts';
import { NoMultipleRanges, type RangeLimits, type RemoteFile, requestRanges } from './ranges-request.ts';
import { type ByteSpan, type ByteSpans, batchesOf, joinSpans, spansOf, without } from './ranges-spans.ts';

interface SessionOptions {
  readonly route: Route;
  readonly remote: RemoteFile;
  readonly local: FileHandle;
  readonly limits: RangeLimits;
  readonly signal: AbortSignal;
  /** Runs a request, and retries it if that may help. */
  readonly withTries: <T>(signal: AbortSignal, attempt: () => Promise<T>) => Promise<T>;
  readonly onBytes: (bytes: number) => void;
  readonly leastGain?: number | undefined;
}

/** Enough to find out, and little to fetch in vain. */
const LESSON = { ranges: 8, bytes: 2 * 1_024 * 1_024 };

export class RangeSession {
  readonly #options: SessionOptions;
  readonly #meter: LinkMeter;
  readonly #writer: PieceWriter;
  /** Whether the server sends several ranges in one answer; undefined before the first attempt. */
  #takesSeveral: boolean | undefined;
  #receivedBytes = 0;

  constructor(options: SessionOptions, meter: LinkMeter) {
    this.#options = options;
    this.#meter = meter;
    this.#writer = new PieceWriter(options.local);
  }

  /** The longest gap that is fetched too. */
  get gapBytes(): number {
    return worthwhileGap(this.#meter.link, this.#mode);
  }

  /** Fetches one range. @throws OutboundRefused, OutboundFailed; the signal's reason */
  async read(span: ByteSpan): Promise<Uint8Array> {
    const bytes = new Uint8Array(span.end - span.start);
    const onPiece = (piece: Piece): void => bytes.set(piece.bytes, piece.start - span.start);
    await this.#request([span], this.#options.signal, { onPiece });
    return bytes;
  }

  /**
   * Requests the first few ranges at once, to see whether the server supports that; does so once.
   * @returns the spans still to be fetched. Throws as {@link read} does.
   */
  async learn(spans: ByteSpans): Promise<ByteSpans> {
    if (this.#takesSeveral !== undefined || spans.starts.length < 2) return spans;
    const [first = []] = batchesOf(spans, LESSON);
    if (first.length < 2) return spans;
    try {
      await this.#request(first, this.#options.signal);
      this.#takesSeveral = true;
    } catch (error) {
      if (!(error instanceof NoMultipleRanges)) throw error;
      this.#takesSeveral = false;
      return spans;
    }
    return without(spans, spansOf([{ start: 0, end: first.at(-1)?.end ?? 0 }]));
  }

  /** The spans to fetch, with gaps; undefined if the whole file is nearly as fast. */
  plan(spans: ByteSpans): ByteSpans | undefined {
    return this.#planFor(spans, this.#mode);
  }

  /** Whether these would not be faster even with several ranges in one answer. */
  isHopeless(spans: ByteSpans): boolean {
    return this.#planFor(spans, rangeModes.multiple) === undefined;
  }

  #planFor(spans: ByteSpans, mode: RangeMode): ByteSpans | undefined {
    const { link } = this.#meter;
    const { remote, leastGain } = this.#options;
    const joined = joinSpans(spans, worthwhileGap(link, mode));
    return isWorthwhile(joined, remote.sizeBytes, link, mode, leastGain) ? joined : undefined;
  }

  /** Fetches a plan. Throws as {@link read} does. */
  async fetch(spans: ByteSpans): Promise<void> {
    const { limits, signal } = this.#options;
    const slow = new AbortController();
    // The limits of a body do not cover many small ones that are slow together.
    let seenBytes = this.#receivedBytes;
    const watch = setInterval(() => {
      const isSlow =
        this.#receivedBytes - seenBytes < (limits.minBytesPerSecond * limits.rateWindowMs) / 1_000;
      if (isSlow) slow.abort(new OutboundFailed('too-slow', 'the server sends too slowly', true));
      seenBytes = this.#receivedBytes;
    }, limits.rateWindowMs);
    try {
      await this.#drain(batchesOf(spans, this.#mode), AbortSignal.any([signal, slow.signal]));
    } finally {
      clearInterval(watch);
    }
  }

  get #mode(): RangeMode {
    return this.#takesSeveral === true ? rangeModes.multiple : rangeModes.single;
  }

  /** All batches, over the mode's connections; the first failure ends the others. */
  async #drain(batches: Iterator<readonly ByteSpan[]>, outer: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const signal = AbortSignal.any([outer, failed.signal]);
    const work = async (): Promise<void> => {
      for (let next = batches.next(); !next.done; next = batches.next()) {
        await this.#request(next.value, signal, { isAlone: false });
      }
    };
    const workers = Array.from({ length: this.#mode.connections }, () =>
      work().catch((error: unknown) => {
        failed.abort(error);
        throw error;
      }),
    );
    // No worker may still write when the caller closes the file.
    await Promise.allSettled(workers);
    outer.throwIfAborted();
    if (failed.signal.aborted) throw asFailure(failed.signal.reason);
  }

  async #request(
    spans: readonly ByteSpan[],
    signal: AbortSignal,
    { onPiece, isAlone = true }: { onPiece?: (piece: Piece) => void; isAlone?: boolean } = {},
  ): Promise<void> {
    const { route, remote, limits, onBytes, withTries } = this.#options;
    await withTries(signal, async () => {
      const answer = await requestRanges(route, remote, spans, limits, signal);
      const begunAt = performance.now();
      let bytes = 0;
      for await (const pieces of answer.pieces) {
        await this.#writer.write(pieces);
        let come = 0;
        for (const piece of pieces) {
          onPiece?.(piece);
          come += piece.bytes.length;
        }
        bytes += come;
        this.#receivedBytes += come;
        onBytes(come);
      }
      // Concurrent answers share the link: each one alone would make it look slower than it is.
      const seconds = (performance.now() - begunAt) / 1_000;
      this.#meter.add(isAlone ? bytes : 0, isAlone ? seconds : 0, answer.waitedSeconds);
    });
  }
}

/** The server stopped sending several ranges midway. */
function asFailure(error: unknown): unknown {
  if (!(error instanceof NoMultipleRanges)) return error;
  return new OutboundFailed('protocol', 'the server no longer sends several ranges', false, { cause: error });
}

// Writes the pieces of an answer to the local file.

/** Limit for writing the pieces of a chunk (at most 64 KiB); to memory it takes a tenth of it. */
const SLOW_MS = 20;

/**
 * Small writes go to the page cache in microseconds, less than a trip to another thread. If the
 * disk is behind, they would block this process, so after a slow chunk other threads write.
 * docs/decisions/0010-sparse-fetch.md
 */
export class PieceWriter {
  readonly #file: FileHandle;
  #usesThreads = false;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Resolves when all are written. @throws file system errors */
  async write(pieces: readonly Piece[]): Promise<void> {
    if (this.#usesThreads) {
      await Promise.all(pieces.map((piece) => this.#writeInThread(piece)));
      return;
    }
    const begunAt = performance.now();
    for (const piece of pieces) this.#writeNow(piece);
    this.#usesThreads = performance.now() - begunAt > SLOW_MS;
  }

  // A write may write fewer bytes than requested.

  #writeNow({ start, bytes }: Piece): void {
    for (let at = 0; at < bytes.length; ) {
      at += writeSync(this.#file.fd, bytes, at, bytes.length - at, start + at);
    }
  }

  async #writeInThread({ start, bytes }: Piece): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      at += (await this.#file.write(bytes, at, bytes.length - at, start + at)).bytesWritten;
    }
  }
}
