/** How much of the sound that a segment should hold it holds (pure). */
import { secondsBetween } from '../join/transport-packets.ts';
import { type Segment, unusable } from '../presentation.ts';

export interface Span {
  /** By its own timestamps. */
  readonly startSeconds: number;
  readonly heldSeconds: number;
}

/** What a segment's file holds. */
export interface Sound {
  /** ffmpeg's demuxer of its container. */
  readonly kind: string;
  /** The part of the file that can be joined; the rest is cut off or unreadable. */
  readonly bytes: number;
  /** Undefined where its container does not tell. */
  readonly heldSeconds: number | undefined;
  /** Its first timestamp; undefined where it has none, or another one's clock. */
  readonly startSeconds: number | undefined;
  /** Whether nothing shows that a part of it was lost. */
  readonly isWhole: boolean;
  /** Pictures: beside whole ones sound may end early, or have gaps. */
  readonly beside: readonly Span[];
  /** Where packets of a transport stream are that belong to something that is not whole. */
  readonly broken?: readonly number[];
}

/** The neighbours of a segment on the same clock, if they are known. */
export interface Neighbours {
  readonly before?: Sound | undefined;
  readonly after?: Sound | undefined;
}

/** Less does not count as a loss: the clock's tolerance (decisions A2a). */
const LEAST_MISSING_SECONDS = 0.04;

/** How much a last segment may fall short of its declared length: it is often rounded. */
const ROUNDING_SECONDS = { integer: 0.5, exact: 0.06 } as const;

/** By how much sound may begin and end apart from its pictures. */
const APART_SECONDS = 0.3;

/**
 * Its declared length alone is often wrong, as are timestamps: sound is missing if both say so.
 * @returns seconds; 0 where that is less than anybody notices, or not known
 * @throws {MediaFailure} when it holds nothing of its place, or it is not known how much
 */
export function missingSeconds(segment: Segment, sound: Sound, neighbours: Neighbours): number {
  const { heldSeconds, startSeconds, isWhole } = sound;
  if (heldSeconds === undefined) {
    if (isWhole) return 0;
    throw unusable('a segment of the stream is incomplete');
  }
  // Of a file that is shown in part.
  if (segment.shown !== undefined || segment.seconds === 0) return 0;
  const place = startSeconds === undefined ? undefined : placeOf(startSeconds, neighbours);
  const expected = Math.min(segment.seconds, place?.seconds ?? segment.seconds);
  const within = (span: Span): number => (place === undefined ? span.heldSeconds : place.share(span));
  const shown = within({ startSeconds: startSeconds ?? 0, heldSeconds });
  const missing = expected - shown;
  const isBeside = isWhole && sound.beside.some((span) => within(span) >= expected - APART_SECONDS);
  if (missing <= leastMissing(segment, isWhole && place === undefined) || isBeside) return 0;
  if (shown > 0) return missing;
  throw unusable('a segment of the stream has no audio for its own time');
}

/** @param isDeclared whether only its declared length says how long it should be */
function leastMissing({ seconds }: Segment, isDeclared: boolean): number {
  if (!isDeclared) return LEAST_MISSING_SECONDS;
  return Number.isInteger(seconds) ? ROUNDING_SECONDS.integer : ROUNDING_SECONDS.exact;
}

interface Place {
  readonly seconds: number;
  /** How much of it something fills. */
  share(span: Span): number;
}

/** Between its neighbours; undefined where these do not tell. */
function placeOf(startSeconds: number, { before, after }: Neighbours): Place | undefined {
  if (after?.startSeconds === undefined) return undefined;
  // Where the one before ends; a copy of that one would begin earlier.
  const begin =
    before?.startSeconds === undefined || before.heldSeconds === undefined
      ? 0
      : secondsBetween(startSeconds, before.startSeconds + before.heldSeconds);
  const end = secondsBetween(startSeconds, after.startSeconds);
  if (end <= begin) return undefined;
  return {
    seconds: end - begin,
    share({ startSeconds: at, heldSeconds }) {
      const from = secondsBetween(startSeconds, at);
      return Math.max(0, Math.min(from + heldSeconds, end) - Math.max(from, begin));
    },
  };
}
