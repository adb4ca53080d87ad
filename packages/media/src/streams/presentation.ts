/** A stream as it is fetched: its segments in order, each with where it lies, how it is encrypted and when it plays. */
import { MediaFailure } from '../failure.ts';

/** One address, or a part of what lies there. */
export interface Resource {
  /** Absolute; nobody has looked at it yet but to resolve it. */
  readonly url: string;
  /** `end` is exclusive. Left out: all of it. */
  readonly span?: { readonly start: number; readonly end: number } | undefined;
}

/** AES-128-CBC with PKCS7 padding, over the whole of a segment (RFC 8216 section 4.3.2.4). */
interface Encryption {
  readonly keyUrl: string;
  /** 16 bytes. */
  readonly iv: Uint8Array;
}

/** What is fetched with one request. */
export interface Piece extends Resource {
  readonly encryption?: Encryption | undefined;
}

export interface Segment extends Piece {
  /** What a decoder has to read first: the header of fMP4 or WebM. The same object for all segments that it belongs to. */
  readonly init?: Piece | undefined;
  readonly seconds: number;
  /** What is missing before it, by the stream's own word (EXT-X-GAP); default 0. */
  readonly gapSeconds?: number;
  /** Its timestamps do not follow from those of the segment before it. */
  readonly breaksClock: boolean;
  /** Added to the timestamps of its media it is the place in the presentation, seconds; undefined where the stream does not say. */
  readonly mediaZeroSeconds?: number | undefined;
  /** The part of it that belongs to the presentation, by its own timestamps; default all of it. */
  readonly shown?: { readonly startSeconds: number; readonly endSeconds: number };
}

export interface Presentation {
  readonly segments: readonly Segment[];
  /** How long its pictures are that lie elsewhere: sound that seems to begin behind their end has another clock. */
  readonly picturesSeconds?: number;
}

/** What is to be fetched of a stream. */
export interface OpenedStream {
  /** One address with all of it, to be fetched as any file, and where its timestamp 0 is in the presentation; or segments. */
  readonly content: { readonly fileUrl: string; readonly zeroSeconds: number } | Presentation;
  /** Whether it is the wanted track alone; otherwise that is still to be chosen among the tracks of the file. */
  readonly isTrack: boolean;
}

/** More are refused (decisions A8): at two seconds each, eleven hours. */
const MAX_SEGMENTS = 20_000;

/** @throws {MediaFailure} when there are too many */
export function requireCount(segments: number): void {
  if (segments > MAX_SEGMENTS) throw unusable(`the stream has more than ${MAX_SEGMENTS} segments`);
}

/** The guard takes no longer ones. */
const MAX_ADDRESS_CHARACTERS = 2_048;

/**
 * The address, made absolute. What cannot be is handed to the guard as it is, which refuses it. So is the beginning of what is too long for the guard, and
 * what is relative to that: 20,000 segments would each have an address of megabytes.
 */
export function resolved(address: string, base: string): string {
  if (address.length > MAX_ADDRESS_CHARACTERS) return address.slice(0, MAX_ADDRESS_CHARACTERS + 1);
  if (base.length > MAX_ADDRESS_CHARACTERS) return address;
  const href = URL.parse(address, base)?.href ?? address;
  // Characters outside of ASCII become nine.
  return href.length > MAX_ADDRESS_CHARACTERS ? address : href;
}

/** A playlist or manifest that is broken, or not of this kind. */
export function unusable(details: string, options?: { readonly cause: unknown }): MediaFailure {
  return new MediaFailure('INVALID_VIDEO', details, options);
}

/** A stream that may be good, but is not one of those that can be read. */
export function unsupported(details: string): MediaFailure {
  return new MediaFailure('EXTRACTION_FAILED', details);
}
