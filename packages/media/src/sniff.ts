/**
 * Identifies a file by its bytes, never by its name. The answer is ffmpeg's only allowed demuxer:
 * otherwise it guesses, and a playlist under a media name reads the files that it lists.
 */

import { bits, byteAt, startsWith } from './frame-headers.ts';
import { searchFrames } from './frame-search.ts';

/** How much of a file's head {@link sniffContainer} reads. */
export const SNIFF_BYTES = 128 * 1024;

/** How much to read after the leading tags. */
const BEHIND_TAGS_BYTES = 64 * 1024;

/** More than any program writes; gigabytes could consist of ten-byte ones. */
const MAX_TAGS = 100;

/** Whether a container has its length; else ffprobe takes the last timestamps or a bitrate. */
type DeclaresDuration = 'header' | 'nowhere';

export interface Container {
  /** The name that callers see as `inputFile.format`. */
  readonly name: string;
  /** ffmpeg's demuxer, for `-f` and `-format_whitelist`. */
  readonly demuxer: string;
  readonly declares: DeclaresDuration;
}

const container = (name: string, demuxer: string, declares: DeclaresDuration): Container => ({
  name,
  demuxer,
  declares,
});

const MP4 = container('mp4', 'mov', 'header');
const MATROSKA = container('mkv', 'matroska', 'header');
const FLV = container('flv', 'flv', 'header');
const OGG = container('ogg', 'ogg', 'nowhere');
const FLAC = container('flac', 'flac', 'header');
const MXF = container('mxf', 'mxf', 'header');
const REAL = container('rm', 'rm', 'header');
const PROGRAM_STREAM = container('mpeg', 'mpeg', 'nowhere');

/** Found by frames and packets in a row (frame-headers.ts). */
const FRAMED: readonly Container[] = [
  container('mp3', 'mp3', 'header'),
  container('aac', 'aac', 'nowhere'),
  container('latm', 'loas', 'nowhere'),
  container('ac3', 'ac3', 'nowhere'),
  container('eac3', 'eac3', 'nowhere'),
  container('dts', 'dts', 'nowhere'),
  container('truehd', 'truehd', 'nowhere'),
  container('mlp', 'mlp', 'nowhere'),
  container('dv', 'dv', 'nowhere'),
  container('mpegts', 'mpegts', 'nowhere'),
  ...[PROGRAM_STREAM, OGG, MXF, FLV, FLAC],
];

/** ISO/IEC 14496-12 major brands that have a name of their own; any other is called mp4. */
const BRANDS: Readonly<Record<string, string>> = {
  'qt  ': 'mov',
  'M4A ': 'm4a',
  'M4B ': 'm4b',
  'M4V ': 'm4v',
  '3gp': '3gp',
  '3g2': '3g2',
};

/** Top-level boxes (ISO/IEC 14496-12 table 1), and those of QuickTime before `ftyp`. */
const FRAGMENT_BOXES = ['styp', 'sidx', 'moof', 'emsg', 'prft'];
const QUICKTIME_BOXES = ['moov', 'mdat', 'wide', 'free', 'skip', 'pnot'];
const BOXES = new Set([...FRAGMENT_BOXES, ...QUICKTIME_BOXES, 'uuid', 'udta', 'meta', 'pdin']);

interface Magic {
  readonly at: number;
  readonly bytes: string;
  readonly container: Container;
}

/** Fixed bytes at a fixed place; `.` stands for any byte. The first row that fits wins. */
const MAGICS: readonly Magic[] = [
  { at: 0, bytes: 'OggS\0', container: OGG }, // RFC 3533 section 6
  { at: 0, bytes: 'fLaC', container: FLAC }, // RFC 9639 section 6
  { at: 0, bytes: 'RIFF....WAVE', container: container('wav', 'wav', 'header') },
  { at: 0, bytes: 'RF64....WAVE', container: container('wav', 'wav', 'header') }, // EBU Tech 3306
  { at: 0, bytes: 'BW64....WAVE', container: container('wav', 'wav', 'header') }, // ITU-R BS.2088
  { at: 0, bytes: 'riff.\x91\xcf\x11', container: container('w64', 'w64', 'header') },
  { at: 0, bytes: 'RIFF....AVI.', container: container('avi', 'avi', 'header') },
  { at: 0, bytes: 'FORM....AIFF', container: container('aiff', 'aiff', 'header') },
  { at: 0, bytes: 'FORM....AIFC', container: container('aiff', 'aiff', 'header') },
  // ffmpeg reads nothing of the eight bytes before.
  { at: 8, bytes: 'desc\0\0\0\0\0\0\0\x20', container: container('caf', 'caf', 'header') },
  { at: 0, bytes: 'FLV\x01', container: FLV },
  { at: 0, bytes: '\x30\x26\xb2\x75\x8e\x66\xcf\x11', container: container('asf', 'asf', 'header') },
  { at: 0, bytes: '\0\0\x01\xba', container: PROGRAM_STREAM }, // ISO/IEC 13818-1 pack_start_code
  { at: 0, bytes: '#!AMR', container: container('amr', 'amr', 'nowhere') }, // RFC 4867 section 5
  { at: 0, bytes: '.snd', container: container('au', 'au', 'header') },
  { at: 0, bytes: 'wvpk', container: container('wavpack', 'wv', 'header') },
  { at: 0, bytes: 'MAC ', container: container('ape', 'ape', 'header') },
  { at: 0, bytes: 'TTA1', container: container('tta', 'tta', 'header') },
  { at: 0, bytes: '.RMF\0\0', container: REAL },
  { at: 0, bytes: '.ra\xfd', container: REAL },
  { at: 0, bytes: '\xb7\xd8\0\x20\x37\x49\xda\x11', container: container('wtv', 'wtv', 'header') },
  { at: 0, bytes: 'DSD \x1c\0\0\0', container: container('dsf', 'dsf', 'header') },
  { at: 0, bytes: 'FRM8........DSD ', container: container('dff', 'iff', 'header') },
  { at: 0, bytes: 'MPCK', container: container('mpc', 'mpc8', 'header') },
  { at: 0, bytes: 'MP+', container: container('mpc', 'mpc', 'header') },
  { at: 0, bytes: 'tBaK', container: container('tak', 'tak', 'header') },
  { at: 0, bytes: 'ajkg', container: container('shn', 'shn', 'nowhere') },
  { at: 0, bytes: 'Creative Voice File\x1a', container: container('voc', 'voc', 'nowhere') },
  { at: 0, bytes: 'nut/multimedia container\0', container: container('nut', 'nut', 'nowhere') },
  { at: 0, bytes: 'RIFF....QLCMfmt ', container: container('qcp', 'qcp', 'header') },
  // SMPTE ST 377-1 section 7: the key of a partition pack
  {
    at: 0,
    bytes: '\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02',
    container: MXF,
  },
];

/** All that {@link sniffContainer} can answer, each under one of its names. */
export const containers: readonly Container[] = [
  ...new Set([...MAGICS.map((magic) => magic.container), ...FRAMED, MP4, MATROSKA]),
];

/** A file of which parts can be read. */
export interface SniffSource {
  readonly sizeBytes: number;
  /** Never called for bytes past the end. */
  read(start: number, end: number): Promise<Uint8Array>;
}

/** @param sizeBytes of the file that begins with these bytes; default: they are all of it */
export function bytesSource(bytes: Uint8Array, sizeBytes = bytes.length): SniffSource {
  return { sizeBytes, read: async (start, end) => bytes.subarray(start, end) };
}

/** Reads {@link SNIFF_BYTES}, or, where tags stand in front, half as much behind them. */
export async function sniffContainer(source: SniffSource): Promise<Container | undefined> {
  let [start, length] = [0, SNIFF_BYTES];
  for (let reads = 0; reads < MAX_TAGS && start < source.sizeBytes; reads += 1) {
    const end = Math.min(start + length, source.sizeBytes);
    const bytes = await source.read(start, end);
    const isWhole = end === source.sizeBytes;
    const tags = tagsBytes(bytes);
    if (isWhole || tags + BEHIND_TAGS_BYTES <= bytes.length) {
      return sniffWindow(bytes.subarray(tags), isWhole);
    }
    [start, length] = [start + tags, BEHIND_TAGS_BYTES];
  }
  return undefined;
}

/** Whether tags leave too little of a file's first {@link SNIFF_BYTES} to tell what it is. */
export function isHiddenByTags(head: Uint8Array): boolean {
  return tagsBytes(head) + BEHIND_TAGS_BYTES > SNIFF_BYTES;
}

/** Where the tags end that stand in front, which may be behind these bytes. */
function tagsBytes(bytes: Uint8Array): number {
  let at = 0;
  for (let tags = 0; tags < MAX_TAGS; tags += 1) {
    const tag = id3Bytes(bytes, at) || apeTagBytes(bytes, at);
    if (tag === 0) break;
    at += tag;
  }
  return at;
}

/** ID3v2.4 section 3.1; 0 without a tag. */
export function id3Bytes(bytes: Uint8Array, at: number): number {
  if (!startsWith(bytes, at, 'ID3') || bytes.length < at + 10) return 0;
  const footerBytes = (byteAt(bytes, at + 5) & 0x10) === 0 ? 0 : 10;
  const sizeBytes = bytes.subarray(at + 6, at + 10);
  return 10 + footerBytes + sizeBytes.reduce((size, byte) => size * 128 + (byte & 0x7f), 0);
}

/** APEv2 with a header of 32 bytes, which holds the size of the rest. */
function apeTagBytes(bytes: Uint8Array, at: number): number {
  if (!startsWith(bytes, at, 'APETAGEX') || bytes.length < at + 32) return 0;
  return 32 + Buffer.from(bytes.buffer, bytes.byteOffset + at + 12, 4).readUInt32LE();
}

/**
 * Where the tags begin that a whole file ends with: ID3v1 behind APEv2, as players look for them.
 */
function withoutLastTags(bytes: Uint8Array): number {
  const end = bytes.length - (startsWith(bytes, bytes.length - ID3V1_BYTES, 'TAG') ? ID3V1_BYTES : 0);
  if (!startsWith(bytes, end - 32, 'APETAGEX')) return end;
  // A footer has the form of a header; its size counts itself, and not the header, if there is one.
  const footer = Buffer.from(bytes.buffer, bytes.byteOffset + end - 32, 32);
  const headerBytes = footer.readUInt32LE(20) >>> 31 === 1 ? 32 : 0;
  return Math.max(0, end - headerBytes - footer.readUInt32LE(12));
}

const ID3V1_BYTES = 128;

function sniffWindow(window: Uint8Array, isWhole: boolean): Container | undefined {
  if (isText(window)) return undefined;
  const magic = MAGICS.find(({ at, bytes }) => startsWith(window, at, bytes))?.container;
  const known = magic ?? sniffMatroska(window) ?? sniffIsoMedia(window);
  if (known !== undefined) return known;
  const frames = isWhole ? window.subarray(0, withoutLastTags(window)) : window;
  const { demuxer } = searchFrames(frames, isWhole);
  return FRAMED.find((framed) => framed.demuxer === demuxer);
}

/** No text is media, whatever follows a playlist or a page. */
function isText(window: Uint8Array): boolean {
  if (/^(\xef\xbb\xbf)?\s*(#EXTM3U|ffconcat|<(\?xml|!doctype|html|mpd))/i.test(latin1(window, 0, 256)))
    return true;
  return !window.some((byte) => byte >= 0x80 || (byte < 0x20 && (byte < 9 || byte > 13)));
}

/**
 * ISO/IEC 14496-12 section 4.2: boxes in a row; ffmpeg skips unknown ones. Two known boxes prove a
 * file, or a single box that ends outside the window.
 */
function sniffIsoMedia(window: Uint8Array): Container | undefined {
  let known = 0;
  let name = 'mov';
  for (let at = 0; at + 8 <= window.length; ) {
    const type = latin1(window, at + 4, 4);
    if (type === 'ftyp') {
      const brand = latin1(window, at + 8, 4);
      return { ...MP4, name: BRANDS[brand] ?? BRANDS[brand.slice(0, 3)] ?? 'mp4' };
    }
    const size = boxBytes(window, at);
    if (size < 8) break;
    at += size;
    if (!BOXES.has(type)) continue;
    known += 1;
    if (FRAGMENT_BOXES.includes(type)) name = 'mp4';
    if (at + 8 > window.length) return { ...MP4, name };
  }
  return known >= 2 ? { ...MP4, name } : undefined;
}

/** Size 1: 64 bits follow; 0: to the end of the file. */
function boxBytes(window: Uint8Array, at: number): number {
  const size = bits(window, at, 0, 32);
  return size === 1 ? bits(window, at, 64, 64) : size === 0 ? Number.POSITIVE_INFINITY : size;
}

function sniffMatroska(window: Uint8Array): Container | undefined {
  if (!startsWith(window, 0, '\x1a\x45\xdf\xa3')) return undefined; // RFC 8794 section 11.2.1: EBML
  const isWebm = latin1(window, 0, 128).includes('webm');
  return isWebm ? { ...MATROSKA, name: 'webm' } : MATROSKA;
}

function latin1(bytes: Uint8Array, at: number, length: number): string {
  return Buffer.from(bytes.subarray(at, at + length)).toString('latin1');
}
