/** A stream's segments in order, each with its address, its encryption and when it plays. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { deserialize, serialize } from 'node:v8';
import { OutboundFailed } from 'soundpost-outbound/errors';
import { MediaFailure } from '../failure.ts';

/** One address, or a range of it. */
export interface Resource {
  /** Absolute, but not checked yet. */
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

/** Fetched with one request. */
export interface Piece extends Resource {
  readonly encryption?: Encryption | undefined;
}

export interface Segment extends Piece {
  /** Read first by a decoder: the header of fMP4 or WebM. Many may share an object. */
  readonly init?: Piece | undefined;
  readonly seconds: number;
  /** The gap before it, by the stream's own tags (EXT-X-GAP); default 0. */
  readonly gapSeconds?: number;
  /** Its timestamps do not continue the clock of the segment before it. */
  readonly breaksClock: boolean;
  /** Media timestamps plus this are presentation time, seconds; undefined if unknown. */
  readonly mediaZeroSeconds?: number | undefined;
  /** The part of it that belongs to the presentation, by its own timestamps; default all of it. */
  readonly shown?: { readonly startSeconds: number; readonly endSeconds: number };
}

export interface Presentation {
  readonly segments: readonly Segment[];
  /** The gap behind the last one, by the stream's own tags; default 0. */
  readonly endGapSeconds?: number;
  /** Length of pictures in other segments: audio that seems to begin after it has another clock. */
  readonly picturesSeconds?: number;
}

/** Segments in a batch. */
const PACKED_AT_ONCE = 500;

/** Between two processes: with its segments in batches. */
export interface PackedPresentation extends Omit<Presentation, 'segments'> {
  readonly batches: readonly Uint8Array[];
}

export function packed({ segments, ...rest }: Presentation): PackedPresentation {
  const batches: Uint8Array[] = [];
  for (let at = 0; at < segments.length; at += PACKED_AT_ONCE)
    batches.push(serialize(segments.slice(at, at + PACKED_AT_ONCE)));
  return { ...rest, batches };
}

/** Lets others run in between: 10,000 segments with keys took 0.2 s at once. */
export async function unpacked({ batches, ...rest }: PackedPresentation): Promise<Presentation> {
  const segments: Segment[] = [];
  for (const batch of batches) {
    segments.push(...(deserialize(batch) as Segment[]));
    await nextTurn();
  }
  return { ...rest, segments };
}

/** What should be fetched of a stream. */
export interface OpenedStream {
  /** One address for all of it, with its timestamp 0 in the presentation; or segments. */
  readonly content: { readonly fileUrl: string; readonly zeroSeconds: number } | Presentation;
  /** Whether it has only the wanted track; otherwise the file's tracks are to choose from. */
  readonly isTrack: boolean;
}

/** More are refused (decisions A8): at two seconds each, five hours and a half. */
const MAX_SEGMENTS = 10_000;

/** @throws {MediaFailure} when there are too many */
export function requireCount(segments: number): void {
  if (segments > MAX_SEGMENTS) throw unusable(`the stream has more than ${MAX_SEGMENTS} segments`);
}

/** The guard accepts no longer ones. */
const MAX_ADDRESS_CHARACTERS = 2_048;

/**
 * The address, made absolute. If it cannot be, or is too long, the guard gets and refuses it, too
 * long ones cut: 10,000 segments could each have an address of megabytes.
 */
export function resolved(address: string, base: string): string {
  if (address.length > MAX_ADDRESS_CHARACTERS) return address.slice(0, MAX_ADDRESS_CHARACTERS + 1);
  if (base.length > MAX_ADDRESS_CHARACTERS) return address;
  const href = URL.parse(address, base)?.href ?? address;
  // Characters outside of ASCII become nine.
  return href.length > MAX_ADDRESS_CHARACTERS ? address : href;
}

/** Of all addresses: as much again as a playlist has in which none is relative. */
const MAX_ADDRESSES_CHARACTERS = 16 * 1024 * 1024;

/**
 * The presentation, unless its addresses take more room than any needs: a base of 2,000 characters
 * is written once and holds for each segment.
 * @throws {MediaFailure}
 */
export function requireShort(presentation: Presentation): Presentation {
  let characters = 0;
  let earlier: Piece | undefined;
  for (const { url, encryption, init } of presentation.segments) {
    characters += url.length + (encryption?.keyUrl.length ?? 0);
    if (init !== earlier) characters += (init?.url.length ?? 0) + (init?.encryption?.keyUrl.length ?? 0);
    earlier = init;
  }
  if (characters > MAX_ADDRESSES_CHARACTERS)
    throw unusable(`the addresses of the stream have more than ${MAX_ADDRESSES_CHARACTERS} characters`);
  return presentation;
}

/** Of a description: those behind are left out, as of a file (decisions A4). */
export const DESCRIBED_TRACKS = 64;

/** Bytes of a header of fMP4 (EXT-X-MAP); of 64 tracks it has some 100 KiB. */
export const MAX_INIT_BYTES = 1024 * 1024;

/** A playlist or manifest that is broken, or not of this kind. */
export function unusable(details: string, options?: { readonly cause: unknown }): MediaFailure {
  return new MediaFailure('INVALID_VIDEO', details, options);
}

/**
 * A playlist or manifest of which the end did not come: a failed download, which is tried again.
 */
export class CutOff extends OutboundFailed {
  constructor(details: string) {
    super('reset', details, true);
  }
}

/** A stream that may be valid, but cannot be read here. */
export function unsupported(details: string): MediaFailure {
  return new MediaFailure('EXTRACTION_FAILED', details);
}

/**
 * Systems whose keys only a licensed player gets, by KEYFORMAT or by schemeIdUri in lower case
 * (DASH-IF's list of content protection systems).
 */
const PROTECTION_SYSTEMS: Readonly<Record<string, string>> = {
  'com.apple.streamingkeydelivery': 'FairPlay',
  'urn:uuid:94ce86fb-07ff-4f43-adb8-93d2fa968ca2': 'FairPlay',
  'urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed': 'Widevine',
  'com.widevine': 'Widevine',
  'com.microsoft.playready': 'PlayReady',
  'urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95': 'PlayReady',
  'urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b': 'Clear Key',
  'urn:uuid:e2719d58-a985-b3c9-781a-b030af78d30e': 'Clear Key',
};

/** @param otherwise where none of the systems is known, such as the method */
export function protectionName(systems: readonly string[], otherwise: string): string {
  return systems.flatMap((system) => PROTECTION_SYSTEMS[system.toLowerCase()] ?? [])[0] ?? otherwise;
}
