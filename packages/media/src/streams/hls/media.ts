/** A media playlist (RFC 8216 section 4.3.2 and 4.3.3) as segments. */
import { encrypted } from '../../failure.ts';
import {
  type Piece,
  type Presentation,
  protectionName,
  requireCount,
  requireShort,
  resolved,
  type Segment,
  unsupported,
  unusable,
} from '../presentation.ts';
import { requireLive } from './cut-off.ts';
import { addressOf, attributesOf, byteRange, linesOf, tagsOf } from './tags.ts';

/** A key as a tag gives it; the IV of a segment may follow from its number. */
interface Key {
  readonly url: string;
  readonly iv: Uint8Array | undefined;
}

/** What the tags so far mean for the next segments. */
interface Reading {
  readonly base: string;
  readonly segments: Segment[];
  sequence: bigint;
  /** In force, by KEYFORMAT; a name stands for a method that needs a licensed player. */
  readonly keys: Map<string, Key | string>;
  init: Piece | undefined;
  seconds: number | undefined;
  range: string | undefined;
  breaksClock: boolean;
  isGap: boolean;
  /** Of the missing segments before the next one. */
  gapSeconds: number;
  /** Where the last byte range of a file ended. */
  rangeEnd: { readonly url: string; readonly at: number } | undefined;
}

/**
 * @param text of the playlist, @param base its address
 * @param isOpenEnded whether its server did not say where it ends: a lost connection looks the same
 * @throws {MediaFailure} EXTRACTION_FAILED `live stream`; INVALID_VIDEO `encrypted`, or if
 * unreadable; {CutOff}
 */
export function parseMedia(text: string, base: string, isOpenEnded = false): Presentation {
  const tags = tagsOf(text);
  if (tags.has('EXT-X-STREAM-INF')) throw unusable('the playlist leads to another master playlist');
  const hasEnd = tags.has('EXT-X-ENDLIST');
  if (!hasEnd) requireLive(text, isOpenEnded);
  if (!tags.has('EXT-X-TARGETDURATION')) throw unusable('the playlist lists files and is not an HLS stream');
  if (!hasEnd) throw unsupported('live stream');
  const reading: Reading = {
    base,
    segments: [],
    sequence: 0n,
    keys: new Map(),
    init: undefined,
    seconds: undefined,
    range: undefined,
    breaksClock: false,
    isGap: false,
    gapSeconds: 0,
    rangeEnd: undefined,
  };
  for (const line of linesOf(text)) {
    if ('uri' in line) addSegment(reading, line.uri);
    else readTag(reading, line.tag, line.value);
  }
  if (reading.segments.length === 0) throw unusable('the playlist has no segments');
  return requireShort({ segments: reading.segments, endGapSeconds: reading.gapSeconds });
}

function readTag(reading: Reading, tag: string, value: string): void {
  switch (tag) {
    case 'EXT-X-MEDIA-SEQUENCE':
      if (reading.segments.length === 0) reading.sequence = sequenceOf(value);
      break;
    case 'EXTINF':
      reading.seconds = Number.parseFloat(value);
      break;
    case 'EXT-X-BYTERANGE':
      reading.range = value;
      break;
    case 'EXT-X-DISCONTINUITY':
      reading.breaksClock = true;
      break;
    case 'EXT-X-GAP':
      reading.isGap = true;
      break;
    case 'EXT-X-KEY':
      readKey(reading, value);
      break;
    case 'EXT-X-MAP':
      readMap(reading, value);
      break;
  }
}

/** Holds until the next of its format; keys of several formats may hold at a time. */
function readKey({ keys, base }: Reading, value: string): void {
  const attributes = attributesOf(value);
  const method = attributes.get('METHOD');
  if (method === 'NONE') {
    keys.clear();
    return;
  }
  const format = attributes.get('KEYFORMAT') ?? 'identity';
  const isUsable = method === 'AES-128' && format === 'identity';
  keys.set(
    format,
    isUsable
      ? { url: addressOf(attributes, 'EXT-X-KEY', base), iv: ivOf(attributes.get('IV')) }
      : protectionName([format], method ?? 'no METHOD'),
  );
}

function ivOf(value: string | undefined): Uint8Array | undefined {
  if (value === undefined) return undefined;
  const [, digits] = /^0[xX]([0-9a-fA-F]{1,32})$/.exec(value) ?? [];
  if (digits === undefined) throw unusable('the IV of a key cannot be read');
  return Buffer.from(digits.padStart(32, '0'), 'hex');
}

function readMap(reading: Reading, value: string): void {
  const attributes = attributesOf(value);
  const range = attributes.get('BYTERANGE');
  const key = keyInForce(reading);
  if (key !== undefined && key.iv === undefined) throw unusable('an encrypted EXT-X-MAP needs an IV');
  reading.init = {
    url: addressOf(attributes, 'EXT-X-MAP', reading.base),
    span: range === undefined ? undefined : byteRange(range, 0),
    encryption: key?.iv && { keyUrl: key.url, iv: key.iv },
  };
}

/** @throws {MediaFailure} INVALID_VIDEO `encrypted` when none of those in force is usable */
function keyInForce({ keys }: Reading): Key | undefined {
  const usable = keys.get('identity') ?? [...keys.values()][0];
  if (typeof usable === 'string') throw encrypted(`the stream needs a key (${usable})`);
  return usable;
}

function addSegment(reading: Reading, uri: string): void {
  const { base, seconds, range, rangeEnd, init } = reading;
  if (seconds === undefined || !(seconds >= 0)) throw unusable('a segment of the playlist has no duration');
  const url = resolved(uri, base);
  const follows = rangeEnd?.url === url ? rangeEnd.at : undefined;
  const span = range === undefined ? undefined : byteRange(range, follows);
  const key = keyInForce(reading);
  if (reading.isGap) {
    reading.gapSeconds += seconds;
  } else {
    const encryption = key && { keyUrl: key.url, iv: key.iv ?? sequenceIv(reading.sequence) };
    const { breaksClock, gapSeconds } = reading;
    reading.segments.push({ url, span, init, seconds, gapSeconds, breaksClock, encryption });
    requireCount(reading.segments.length);
    reading.breaksClock = false;
    reading.gapSeconds = 0;
  }
  reading.rangeEnd = span && { url, at: span.end };
  reading.sequence += 1n;
  reading.seconds = undefined;
  reading.range = undefined;
  reading.isGap = false;
}

/** Of the first segment, up to 2^64-1 (section 4.2): too much for a double, and IVs may need it. */
function sequenceOf(value: string): bigint {
  return /^\d{1,20}$/.test(value) ? BigInt(value) : 0n;
}

/** Without an IV it is the segment's number, in 16 bytes (section 5.2). */
function sequenceIv(sequence: bigint): Uint8Array {
  const iv = Buffer.alloc(16);
  iv.writeBigUInt64BE(BigInt.asUintN(64, sequence), 8);
  return iv;
}
