/**
 * Counts what of a stream is missing: by its playlist's own words, and because segments were not
 * what they should be.
 */
import { OutboundFailed } from 'soundpost-outbound/errors';
import { MediaFailure } from '../failure.ts';
import type { MissingSound } from '../source-request.ts';
import type { Presentation, Segment } from './presentation.ts';
import type { FetchedSegment } from './segments/fetch.ts';

/** A stream of which more is missing has failed. */
const MOST_MISSING = 0.9;
/** So many in a row at the beginning, and nothing of the rest is asked for. */
const FIRST_MISSING = 16;

export class Losses {
  readonly #segments: readonly Segment[];
  readonly #seconds: number;
  /** What the next segment takes over of missing ones before it. */
  #carried: Pick<Segment, 'mediaZeroSeconds'> & { seconds: number; breaksClock: boolean } = {
    seconds: 0,
    breaksClock: false,
  };
  #isMissing = false;
  #failure: Error | undefined;
  #count = 0;
  #missingSeconds = 0;
  #markedSeconds = 0;
  #longestGapSeconds = 0;
  /** The segment that the joined file begins with. */
  first: Segment | undefined;

  constructor({ segments, endGapSeconds = 0 }: Presentation) {
    this.#segments = segments;
    this.#markedSeconds = endGapSeconds;
    this.#seconds = segments.reduce((sum, { seconds }) => sum + seconds, 0);
  }

  /**
   * @returns the segment, with the gap that missing ones leave before it
   * @throws when nothing of the stream's beginning is there
   */
  take(fetched: FetchedSegment): Segment {
    const { segment } = fetched;
    this.#markedSeconds += segment.gapSeconds ?? 0;
    const placed = this.#placed(segment);
    if ('failure' in fetched) {
      this.#lose(segment.seconds, fetched.failure);
      const { mediaZeroSeconds, breaksClock, gapSeconds = 0 } = placed;
      this.#carried = { mediaZeroSeconds, breaksClock, seconds: gapSeconds + segment.seconds };
      this.#isMissing = true;
      if (this.first === undefined && this.#count >= FIRST_MISSING) throw this.#asFailure();
      return placed;
    }
    this.first ??= placed;
    this.#isMissing = false;
    this.#carried = { seconds: 0, breaksClock: false };
    if (fetched.missingSeconds > 0) this.#lose(fetched.missingSeconds);
    this.#longestGapSeconds = Math.max(
      this.#longestGapSeconds,
      (placed.gapSeconds ?? 0) + fetched.missingSeconds,
    );
    return placed;
  }

  /** @throws when all of it, or nearly all, is missing */
  requireSound(): void {
    if (this.first === undefined || this.#missingSeconds > MOST_MISSING * this.#seconds)
      throw this.#asFailure();
  }

  /** Undefined where nothing is. */
  get missing(): MissingSound | undefined {
    if (this.#count === 0 && this.#markedSeconds === 0) return undefined;
    return {
      markedSeconds: this.#markedSeconds,
      segments: this.#count,
      segmentsSeconds: this.#missingSeconds,
    };
  }

  /** Between two segments. */
  get longestGapSeconds(): number {
    return this.#longestGapSeconds;
  }

  #placed(segment: Segment): Segment {
    if (!this.#isMissing) return segment;
    const { seconds, breaksClock, mediaZeroSeconds } = this.#carried;
    return {
      ...segment,
      gapSeconds: seconds + (segment.gapSeconds ?? 0),
      breaksClock: segment.breaksClock || breaksClock,
      mediaZeroSeconds: segment.mediaZeroSeconds ?? mediaZeroSeconds,
    };
  }

  #lose(seconds: number, failure?: Error): void {
    this.#count += 1;
    this.#missingSeconds += seconds;
    this.#failure ??= failure;
  }

  #asFailure(): Error {
    const failure = this.#failure;
    const of = `${this.#count} of ${this.#segments.length} segments of the stream are empty, incomplete or unreadable`;
    const why = failure instanceof MediaFailure ? failure.details : failure?.message;
    const details = why === undefined ? of : `${of}: ${why}`;
    return failure instanceof MediaFailure
      ? new MediaFailure(failure.code, details, { cause: failure })
      : new OutboundFailed('reset', details, false, { cause: failure });
  }
}
