/** Which streams of a file only somebody with a key can decode. */
import type { FfprobeStream, Tags } from './ffprobe.ts';
import { bits, byteAt, startsWith } from './frame-headers.ts';
import { isPacket, packetGrid } from './frame-search.ts';
import { LocalBytes } from './local-bytes.ts';
import type { Container } from './sniff.ts';
import { type Box, childrenOf, UnsupportedLayout } from './sparse/mp4/boxes.ts';
import { type LocalFile, movieBox, topLevelBoxes } from './truncation.ts';

/** Sample entries of ISO/IEC 14496-12 section 8.12, of FairPlay and of Audible. */
const SAMPLE_ENTRIES = new Set(['enca', 'drms', 'aavd']);

/** stream_type, or format_identifier: Apple's "MPEG-2 Stream Encryption Format for HLS". */
const STREAM_TYPES = new Set(['[207][0][0][0]', '[193][0][0][0]', '[194][0][0][0]', 'apad']);

/** What ffmpeg makes of ASF's objects of content encryption. */
const ASF_TAGS = ['ASF_Protection_Type', 'encryption'];

/** What ffmpeg makes of Matroska's ContentEncryption. */
const MATROSKA_TAG = 'enc_key_id';

/**
 * Common Encryption (ISO/IEC 23001-7), FairPlay, Audible, Matroska's ContentEncryption, Windows
 * Media DRM, HLS SAMPLE-AES, and scrambled transport streams.
 * @param tags of the file
 * @param encryptedIds as {@link encryptedStreams} answers
 */
export function isEncrypted(
  stream: FfprobeStream,
  { demuxer }: Container,
  tags: Tags,
  encryptedIds: ReadonlySet<number>,
): boolean {
  const { codec_tag_string = '', side_data_list } = stream;
  if (encryptedIds.has(idOf(stream)) || MATROSKA_TAG in stream.tags) return true;
  if (side_data_list.some(({ side_data_type }) => side_data_type.startsWith('Encryption'))) return true;
  if (demuxer === 'asf') return ASF_TAGS.some((name) => name in tags);
  return (demuxer === 'mpegts' ? STREAM_TYPES : SAMPLE_ENTRIES).has(codec_tag_string);
}

/** The container's own number of a stream, such as its PID; NaN where it has none. */
export function idOf({ id = '' }: FfprobeStream): number {
  return Number.parseInt(id, 16);
}

/**
 * Facts about streams that ffprobe does not report.
 * @param mostBytes that are read of an MP4; default: as many as it takes
 * @returns numbers that the container has for those that are encrypted
 * @throws {NotInPlace} where it takes more
 */
export async function encryptedStreams(
  { path, demuxer, sizeBytes }: LocalFile,
  mostBytes?: number,
): Promise<ReadonlySet<number>> {
  if (demuxer !== 'mpegts' && demuxer !== 'mov') return new Set();
  const isMovie = demuxer === 'mov';
  // Of a transport stream three windows are read, whatever its size.
  await using file = await LocalBytes.open(path, isMovie ? mostBytes : undefined);
  return isMovie ? await encryptedTracks(file, sizeBytes) : await scrambledPids(file, sizeBytes);
}

// MP4: ffprobe names the codec below the encryption.

async function encryptedTracks(file: LocalBytes, sizeBytes: number): Promise<ReadonlySet<number>> {
  for await (const { type, at, end } of topLevelBoxes(file, sizeBytes)) {
    if (type !== 'moov' || end > sizeBytes) continue;
    const movie = await movieBox(file, { at, end });
    if (movie === undefined) continue;
    const traks = insideOf(movie).filter((box) => box.type === 'trak');
    return new Set(traks.flatMap(({ payload }) => (isTrackEncrypted(payload) ? [trackId(payload)] : [])));
  }
  return new Set();
}

function isTrackEncrypted(trak: Uint8Array): boolean {
  const path = ['mdia', 'minf', 'stbl', 'stsd'];
  const description = path.reduce((bytes, type) => onlyInside(bytes, type), trak);
  // Behind version, flags and the number of entries.
  return insideOf(description.subarray(8)).some(({ type }) => SAMPLE_ENTRIES.has(type));
}

function trackId(trak: Uint8Array): number {
  const tkhd = onlyInside(trak, 'tkhd');
  // Version 1 has 64-bit times in front of it.
  return bits(tkhd, tkhd[0] === 1 ? 20 : 12, 0, 32);
}

function onlyInside(bytes: Uint8Array, type: string): Uint8Array {
  return insideOf(bytes).find((box) => box.type === type)?.payload ?? new Uint8Array();
}

/** Empty if the bytes are not a list of boxes: ffmpeg may still read them. */
function insideOf(bytes: Uint8Array): readonly Box[] {
  try {
    return childrenOf(bytes);
  } catch (error) {
    if (error instanceof UnsupportedLayout) return [];
    throw error;
  }
}

// Transport streams: ffmpeg takes no notice of scrambled packets, and finds nothing in them.

/** Of the beginning, the middle and the end: a recording may begin before its key has come. */
const WINDOW_BYTES = 1024 * 1024;
/** Enough to find how far apart packets are. */
const GRID_BYTES = 64 * 1024;
/** Fewer may come from a damaged packet. */
const LEAST_PACKETS = 8;

interface Tally {
  scrambled: number;
  clear: number;
  /** Whether the payload of the PES packet that goes on is. */
  isPesScrambled: boolean;
}

/** By transport_scrambling_control and PES_scrambling_control (ISO/IEC 13818-1), most packets. */
async function scrambledPids(file: LocalBytes, sizeBytes: number): Promise<ReadonlySet<number>> {
  const tallies = new Map<number, Tally>();
  const last = Math.max(0, sizeBytes - WINDOW_BYTES);
  for (const start of new Set([0, last >> 1, last])) {
    count(await file.at(start, WINDOW_BYTES), tallies);
  }
  return new Set(
    [...tallies].flatMap(([pid, { scrambled, clear }]) =>
      scrambled >= LEAST_PACKETS && scrambled > clear ? [pid] : [],
    ),
  );
}

function count(window: Uint8Array, tallies: Map<number, Tally>): void {
  const grid = packetGrid(window.subarray(0, GRID_BYTES));
  if (grid === undefined) return;
  const { sizeBytes } = grid;
  for (let { at } = grid; at < window.length; ) {
    if (isPacket(window, at)) {
      countPacket(window, at, tallies);
      at += sizeBytes;
    } else {
      at += isPacket(window, at + sizeBytes) ? sizeBytes : 1;
    }
  }
}

function countPacket(window: Uint8Array, at: number, tallies: Map<number, Tally>): void {
  const control = byteAt(window, at + 3);
  const hasPayload = (control & 0x10) !== 0;
  if (!hasPayload) return;
  const pid = ((byteAt(window, at + 1) & 0x1f) << 8) | byteAt(window, at + 2);
  const tally = tallies.get(pid) ?? { scrambled: 0, clear: 0, isPesScrambled: false };
  tallies.set(pid, tally);
  const isPacketScrambled = control >> 6 !== 0;
  const beginsPes = (byteAt(window, at + 1) & 0x40) !== 0;
  if (beginsPes && !isPacketScrambled) {
    const adaptationBytes = (control & 0x20) === 0 ? 0 : 1 + byteAt(window, at + 4);
    tally.isPesScrambled = isPesScrambled(window, at + 4 + adaptationBytes);
  }
  if (isPacketScrambled || tally.isPesScrambled) tally.scrambled += 1;
  else tally.clear += 1;
}

/** Only packets with the optional header say so: those of sound and pictures have it. */
function isPesScrambled(window: Uint8Array, at: number): boolean {
  const flags = byteAt(window, at + 6);
  return startsWith(window, at, '\0\0\x01') && flags >> 6 === 2 && (flags & 0x30) !== 0;
}
