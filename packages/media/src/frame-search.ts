/**
 * Finds frames, packets and pages at any position, by several in a row. Recordings begin in the
 * middle, behind junk or with a damaged byte, and ffmpeg's demuxers of these forms search as well.
 */
import { bits, byteAt, FRAMINGS, type Framing } from './frame-headers.ts';

/** The frames found in one form. */
interface Find {
  readonly demuxer: string;
  /** Where its first row begins. */
  at: number;
  /** How much of the window its rows cover. */
  bytes: number;
}

interface FrameSearch {
  /** undefined where nothing was found. */
  readonly demuxer: string | undefined;
  /** Tests for the beginning of a frame: at most a few at each byte. */
  readonly tests: number;
}

/**
 * The form that explains most of the window; among equals, the first to begin.
 * @param isWhole whether the file ends with the window: then a few frames that are all of it do
 */
export function searchFrames(window: Uint8Array, isWhole: boolean): FrameSearch {
  const search = { window, isWhole, tests: 0 };
  const finds = [...framedRows(search), ...transportStream(window), ...flac(window)];
  const best = finds.sort((a, b) => b.bytes - a.bytes || a.at - b.at)[0];
  return { demuxer: best?.demuxer, tests: search.tests + SYNC_TESTS * window.length };
}

interface Search {
  readonly window: Uint8Array;
  readonly isWhole: boolean;
  tests: number;
}

function framedRows(search: Search): Find[] {
  const trials = FRAMINGS.map((framing) => ({
    framing,
    find: { demuxer: framing.demuxer, at: 0, bytes: 0 },
    lastEnd: 0,
  }));
  const byFirst = Array.from({ length: 256 }, (_, byte) =>
    trials.filter(({ framing }) => framing.first.includes(byte)),
  );
  const { window } = search;
  for (let place = 0; place < window.length; place += 1) {
    for (const trial of byFirst[byteAt(window, place)] ?? []) {
      const { framing, find } = trial;
      const at = place - (framing.lead ?? 0);
      const end = at < trial.lastEnd ? undefined : rowEnd(search, framing, at);
      if (end === undefined) continue;
      if (find.bytes === 0) find.at = at;
      find.bytes += Math.min(end, window.length) - at;
      trial.lastEnd = end;
    }
  }
  return trials.map(({ find }) => find).filter(({ bytes }) => bytes > 0);
}

/** Linear: a row that fails is shorter than `least`; any other row is never entered again. */
function rowEnd(search: Search, framing: Framing, from: number): number | undefined {
  const { window, isWhole } = search;
  let at = from;
  let frames = 0;
  for (; at < window.length; frames += 1) {
    search.tests += 1;
    const size = framing.frameBytes(window, at);
    if (size === 0) break;
    if (frames === 0 ? framing.begins?.(window, at) === false : !isKin(framing, window, from, at)) break;
    at += size;
  }
  const isWholeFile = isWhole && from === 0 && at >= window.length;
  // The last segment of a stream may be one frame, which then ends with the file.
  const least = isWholeFile ? (at === window.length ? 1 : 2) : framing.least;
  return frames >= Math.min(least, framing.least) ? at : undefined;
}

/** Whether a header shares with the row's first what all headers of a file share. */
function isKin({ shared = [] }: Framing, window: Uint8Array, first: number, at: number): boolean {
  return shared.every(
    (mask, index) => ((byteAt(window, first + index) ^ byteAt(window, at + index)) & mask) === 0,
  );
}

/** ISO/IEC 13818-1 packets: 188 bytes; AVCHD 192 (timestamp first), 204 with error correction. */
const PACKET_SIZES = [188, 192, 204];
/** Each byte is looked at once for each size of a packet, and once for FLAC. */
const SYNC_TESTS = PACKET_SIZES.length + 1;

/** Packets in a row, or as many as a short file has; one in five may be damaged. */
const PACKETS = { least: 8, ofShortFile: 3 };

function transportStream(window: Uint8Array): Find[] {
  return packetGrids(window).map(({ at, sizeBytes, hits }) => ({
    demuxer: 'mpegts',
    at,
    bytes: hits * sizeBytes,
  }));
}

/** Packets of a transport stream that follow one another. */
interface PacketGrid {
  /** Where the first one's sync_byte is. */
  readonly at: number;
  /** From one to the next. */
  readonly sizeBytes: number;
  readonly hits: number;
}

/** The grid that explains most of the window; undefined where there is no transport stream. */
export function packetGrid(window: Uint8Array): PacketGrid | undefined {
  return packetGrids(window).sort((a, b) => b.hits * b.sizeBytes - a.hits * a.sizeBytes)[0];
}

function packetGrids(window: Uint8Array): PacketGrid[] {
  const grids: PacketGrid[] = [];
  for (const sizeBytes of PACKET_SIZES) {
    const least = window.length < (PACKETS.least + 1) * sizeBytes ? PACKETS.ofShortFile : PACKETS.least;
    for (let phase = 0; phase < sizeBytes; phase += 1) {
      const { from, hits } = packetRow(window, phase, sizeBytes);
      if (hits >= least) grids.push({ at: from, sizeBytes, hits });
    }
  }
  return grids;
}

/** The stretch with most packets where no more than one in five is damaged (Kadane's sum). */
function packetRow(window: Uint8Array, phase: number, size: number): { from: number; hits: number } {
  let best = { from: 0, hits: 0, sum: 0 };
  let now = { from: phase, hits: 0, sum: 0 };
  for (let at = phase; at < window.length; at += size) {
    if (isPacket(window, at)) {
      if (now.sum === 0) now = { from: at, hits: 0, sum: 0 };
      now.sum += 1;
      now.hits += 1;
      if (now.sum > best.sum) best = { ...now };
    } else {
      now.sum = Math.max(0, now.sum - 4);
    }
  }
  return best;
}

/** Whether a packet begins: with sync_byte and an adaptation_field_control that is not reserved. */
export function isPacket(window: Uint8Array, at: number): boolean {
  return window[at] === 0x47 && (byteAt(window, at + 3) & 0x30) !== 0;
}

/** RFC 9639 section 9.1: frames tell no length, but a number that rises, and have a CRC. */
function flac(window: Uint8Array): Find[] {
  /** Rows by the number that would go on with them. */
  const rows = new Map<number, { from: number; end: number; frames: number }>();
  let best = { from: 0, end: 0, frames: 0 };
  for (let at = window.indexOf(0xff); at >= 0; at = window.indexOf(0xff, at + 1)) {
    const header = flacHeader(window, at);
    if (header === undefined) continue;
    const row = rows.get(header.number) ?? { from: at, end: at, frames: 0 };
    rows.delete(header.number);
    row.end = at;
    row.frames += 1;
    rows.set(header.next, row);
    if (row.end - row.from > best.end - best.from) best = row;
  }
  return best.frames < 2 ? [] : [{ demuxer: 'flac', at: best.from, bytes: best.end - best.from }];
}

/** A frame's number or its first sample's, and the next frame's; undefined if no frame begins. */
function flacHeader(window: Uint8Array, at: number): { number: number; next: number } | undefined {
  if ((byteAt(window, at + 1) & 0xfe) !== 0xf8) return undefined;
  const blockCode = byteAt(window, at + 2) >> 4;
  const rateCode = byteAt(window, at + 2) & 15;
  const channels = byteAt(window, at + 3) >> 4;
  if (blockCode === 0 || rateCode === 15 || channels > 10 || (byteAt(window, at + 3) & 1) === 1)
    return undefined;
  // The number is coded as UTF-8 codes a character, with up to seven bytes.
  const first = byteAt(window, at + 4);
  const length = first < 0x80 ? 1 : Math.clz32(~(first << 24));
  if (length > 7 || (first >= 0x80 && length === 1)) return undefined;
  let number = length === 1 ? first : first & (0x7f >> length);
  let end = at + 5;
  for (; end < at + 4 + length; end += 1) number = number * 64 + (byteAt(window, end) & 0x3f);
  const sizeAt = end;
  if (blockCode === 6 || blockCode === 7) end += blockCode - 5;
  if (rateCode > 11) end += rateCode === 12 ? 1 : 2;
  if (end >= window.length || crc8(window, at, end) !== window[end]) return undefined;
  const isVariable = (byteAt(window, at + 1) & 1) === 1;
  return { number, next: number + (isVariable ? flacBlock(window, blockCode, sizeAt) : 1) };
}

/** Table 14: samples of a frame. */
function flacBlock(window: Uint8Array, code: number, at: number): number {
  if (code === 1) return 192;
  if (code <= 5) return 144 << code;
  if (code <= 7) return bits(window, at, 0, 8 * (code - 5)) + 1;
  return 1 << code;
}

/** x^8 + x^2 + x + 1 */
function crc8(bytes: Uint8Array, from: number, end: number): number {
  let crc = 0;
  for (let at = from; at < end; at += 1) {
    crc ^= byteAt(bytes, at);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc & 0x80 ? 0x107 : 0);
  }
  return crc;
}
