/** Fetches the segments of a stream, several at a time, and passes them on in order. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { untilAborted } from 'soundpost-base/deadline';
import { MediaFailure } from '../../failure.ts';
import type { Reading } from '../../reading/in-place.ts';
import { PieceFetcher, type StreamContext } from '../fetch.ts';
import { asAsked, isCutOff, NotAsAsked, orItsFailure } from '../not-as-asked.ts';
import { type Segment, unusable } from '../presentation.ts';
import { PACKED } from './examine.ts';
import { examine } from './examine-apart.ts';
import { missingSeconds, type Neighbours, type Sound } from './sound.ts';

/** Half as many as for parts of a file: each segment stays on disk until earlier ones are done. */
const SEGMENTS_AT_ONCE = 8;

/** A segment that has arrived, or why it has not. */
export type FetchedSegment = { readonly segment: Segment } & (
  | {
      readonly file: string;
      readonly init: Uint8Array | undefined;
      readonly sound: Sound;
      /** How much of its audio is missing after all attempts. */
      readonly missingSeconds: number;
    }
  /** In each attempt it was empty, cut off or unreadable. */
  | { readonly failure: Error }
);

/**
 * @param take gets each segment in order: as a file of its own, decrypted, with its init section if
 * segments of its container need one; the file is removed afterwards
 * @throws as {@link FetchPiece}; {MediaFailure} for an invalid key or header; what `take` throws
 */
export async function fetchSegments(
  context: StreamContext,
  segments: readonly Segment[],
  take: (fetched: FetchedSegment) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);
  const fetcher = new SegmentFetcher({ ...context, signal }, segments);
  let taken = 0;
  const rest = segments.keys();
  const underway: { readonly file: string; readonly fetched: Promise<Stored> }[] = [];
  const fill = (): void => {
    while (underway.length < SEGMENTS_AT_ONCE) {
      const { value: nth, done } = rest.next();
      if (done) return;
      const file = join(context.folder, String(nth));
      const fetched = fetcher.fetch(nth, file);
      fetched.catch(() => {}); // It is awaited in order.
      underway.push({ file, fetched });
    }
  };
  try {
    for (fill(); underway.length > 0; fill()) {
      for (const { file, fetched } of underway.splice(0, 1)) {
        const { sizeBytes, ...stored } = await fetched;
        taken += 1;
        fetcher.passed(taken, stored);
        await take(stored);
        await rm(file, { force: true });
        await context.makeRoom(-sizeBytes);
      }
    }
  } catch (error) {
    failed.abort(error);
    throw error;
  } finally {
    // None may still write when the caller removes the folder.
    await Promise.allSettled(underway.map(({ fetched }) => fetched));
  }
}

/** With the size of its file, bytes. */
type Stored = FetchedSegment & { readonly sizeBytes: number };

/** Asks for a segment until its answer is whole: beside those before and after it, too. */
class SegmentFetcher {
  readonly #pieces: PieceFetcher;
  readonly #reading: Reading;
  readonly #signal: AbortSignal;
  readonly #segments: readonly Segment[];
  /** The first result of each; undefined: none. Finished segments are removed. */
  readonly #found = new Map<number, PromiseWithResolvers<Sound | undefined>>();
  /** The container of the first that could be read, once that has been taken. */
  #kind: string | undefined;
  /** How many have been taken. */
  #taken = 0;

  constructor(context: StreamContext, segments: readonly Segment[]) {
    this.#pieces = new PieceFetcher(context);
    this.#reading = context.reading;
    this.#signal = context.signal;
    this.#segments = segments;
  }

  async fetch(nth: number, file: string): Promise<Stored> {
    const [segment] = this.#segments.slice(nth, nth + 1);
    if (segment === undefined) throw new Error('no such segment');
    let kept: { readonly sound: Sound; readonly missingSeconds: number } | undefined;
    let sizeBytes: number | undefined;
    const look = async (isWhole: boolean): Promise<void> => {
      const examined = await this.#examine(nth, segment, file);
      const sound = isWhole ? examined : { ...examined, isWhole };
      this.#foundOf(nth).resolve(sound);
      const missing = missingSeconds(segment, sound, await this.#around(nth));
      kept = { sound, missingSeconds: missing };
      if (missing > 0) throw unusable(`a segment of the stream lacks ${missing.toFixed(2)} s of its sound`);
    };
    try {
      await this.#pieces.toFile(segment, file, {
        look: (isWhole) => asAsked(() => look(isWhole)),
        onSize(bytes) {
          if (bytes === 0) kept = undefined;
          sizeBytes = bytes;
        },
      });
    } catch (error) {
      if (error instanceof NotAsAsked && !error.retryable) throw error.failure;
      const isLie = error instanceof NotAsAsked || (isCutOff(error) && sizeBytes !== undefined);
      if (!isLie) throw error;
      const failure = error instanceof NotAsAsked ? error.failure : error;
      if (kept === undefined) return { segment, sizeBytes: sizeBytes ?? 0, failure };
    } finally {
      this.#foundOf(nth).resolve(undefined);
      this.#found.delete(nth - 2 * SEGMENTS_AT_ONCE);
    }
    if (kept === undefined) throw new Error('a segment that nobody has looked at');
    const init = await orItsFailure(this.#initOf(segment, kept.sound.kind));
    return { segment, file, init, ...kept, sizeBytes: sizeBytes ?? 0 };
  }

  /** @param taken how many have been taken, with the last of them */
  passed(taken: number, last: FetchedSegment): void {
    this.#taken = taken;
    if ('sound' in last) this.#kind ??= last.sound.kind;
  }

  async #examine(nth: number, segment: Segment, file: string): Promise<Sound> {
    const sound = await examine(file, () => this.#initOf(segment, 'mov'), this.#reading);
    const kind = (await this.#kindBefore(nth)) ?? sound.kind;
    if (sound.kind === kind) return sound;
    throw unusable(`a segment of the stream is ${sound.kind}, others are ${kind}`);
  }

  async #kindBefore(nth: number): Promise<string | undefined> {
    for (let earlier = this.#taken; earlier < nth && this.#kind === undefined; earlier += 1) {
      const sound = await this.#soundOf(earlier);
      if (sound !== undefined) return sound.kind;
    }
    return this.#kind;
  }

  /** Once each has an answer: each waits for the first answer of its neighbours alone. */
  async #around(nth: number): Promise<Neighbours> {
    const [here, next] = this.#segments.slice(nth, nth + 2);
    const isApart = (segment: Segment): boolean => segment.breaksClock || (segment.gapSeconds ?? 0) > 0;
    const [before, after] = await Promise.all([
      here === undefined || nth === 0 || isApart(here) ? undefined : this.#soundOf(nth - 1),
      next === undefined || isApart(next) ? undefined : this.#soundOf(nth + 1),
    ]);
    return { before, after };
  }

  /** Once its first answer is there; it may never be asked for, when another one has failed. */
  #soundOf(nth: number): Promise<Sound | undefined> {
    return untilAborted(this.#foundOf(nth).promise, this.#signal);
  }

  #foundOf(nth: number): PromiseWithResolvers<Sound | undefined> {
    const known = this.#found.get(nth) ?? Promise.withResolvers<Sound | undefined>();
    this.#found.set(nth, known);
    return known;
  }

  /** Fetches a header only if it is needed. */
  async #initOf({ init }: Segment, kind: string): Promise<Uint8Array | undefined> {
    if (kind === 'mpegts' || PACKED.includes(kind)) return undefined;
    try {
      return await this.#pieces.bytesOf(await this.#pieces.init(init));
    } catch (error) {
      // Another answer for the segment would not help.
      throw error instanceof MediaFailure ? new NotAsAsked(error, { isFinal: true }) : error;
    }
  }
}
