/**
 * Identifies a file by its first bytes, never by its name. The answer is ffmpeg's only allowed
 * demuxer: otherwise it guesses, and a playlist under a media name reads the files that it lists.
 */

/** How much of a file's head {@link sniffContainer} reads. */
export const SNIFF_BYTES = 64 * 1024;

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
const MP3 = container('mp3', 'mp3', 'header');
const AAC = container('aac', 'aac', 'nowhere');
const LATM = container('latm', 'loas', 'nowhere');
const EAC3 = container('eac3', 'eac3', 'nowhere');
const TRANSPORT_STREAM = container('mpegts', 'mpegts', 'nowhere');
const MATROSKA = container('mkv', 'matroska', 'header');

/** ISO/IEC 14496-12 major brands that have a name of their own; any other is called mp4. */
const BRANDS: Readonly<Record<string, string>> = {
  'qt  ': 'mov',
  'M4A ': 'm4a',
  'M4B ': 'm4b',
  'M4V ': 'm4v',
  '3gp': '3gp',
  '3g2': '3g2',
};

/** First boxes of QuickTime files from before `ftyp` existed. */
const QUICKTIME_BOXES = new Set(['moov', 'mdat', 'wide', 'free', 'skip', 'pnot']);

interface Magic {
  readonly at: number;
  readonly bytes: string;
  readonly container: Container;
}

/** Fixed bytes at a fixed place; `.` stands for any byte. The first row that fits wins. */
const MAGICS: readonly Magic[] = [
  { at: 0, bytes: 'OggS\0', container: container('ogg', 'ogg', 'nowhere') }, // RFC 3533 section 6
  { at: 0, bytes: 'fLaC', container: container('flac', 'flac', 'header') }, // RFC 9639 section 6
  { at: 0, bytes: 'RIFF....WAVE', container: container('wav', 'wav', 'header') },
  { at: 0, bytes: 'RF64....WAVE', container: container('wav', 'wav', 'header') }, // EBU Tech 3306
  { at: 0, bytes: 'BW64....WAVE', container: container('wav', 'wav', 'header') }, // ITU-R BS.2088
  { at: 0, bytes: 'riff.\x91\xcf\x11', container: container('w64', 'w64', 'header') },
  { at: 0, bytes: 'RIFF....AVI ', container: container('avi', 'avi', 'header') },
  { at: 0, bytes: 'FORM....AIFF', container: container('aiff', 'aiff', 'header') },
  { at: 0, bytes: 'FORM....AIFC', container: container('aiff', 'aiff', 'header') },
  { at: 0, bytes: 'caff\0\x01', container: container('caf', 'caf', 'header') },
  { at: 0, bytes: 'FLV\x01', container: container('flv', 'flv', 'header') },
  { at: 0, bytes: '\x30\x26\xb2\x75\x8e\x66\xcf\x11', container: container('asf', 'asf', 'header') },
  { at: 0, bytes: '\0\0\x01\xba', container: container('mpeg', 'mpeg', 'nowhere') }, // ISO/IEC 13818-1 pack_start_code
  { at: 0, bytes: '#!AMR', container: container('amr', 'amr', 'nowhere') }, // RFC 4867 section 5
  { at: 0, bytes: '.snd', container: container('au', 'au', 'header') },
  { at: 0, bytes: 'wvpk', container: container('wavpack', 'wv', 'header') },
  { at: 0, bytes: 'MAC ', container: container('ape', 'ape', 'header') },
  { at: 0, bytes: 'TTA1', container: container('tta', 'tta', 'header') },
  // SMPTE ST 377-1 section 7: the key of a partition pack
  {
    at: 0,
    bytes: '\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02',
    container: container('mxf', 'mxf', 'header'),
  },
  { at: 0, bytes: '\x0b\x77', container: container('ac3', 'ac3', 'nowhere') },
];

/** All that {@link sniffContainer} can answer, each under one of its names. */
export const containers: readonly Container[] = [
  ...MAGICS.map((magic) => magic.container),
  ...[MP4, MP3, AAC, LATM, EAC3, TRANSPORT_STREAM, MATROSKA],
];

/** @param head the first {@link SNIFF_BYTES} of the file, or the whole of a shorter one. */
export function sniffContainer(head: Uint8Array): Container | undefined {
  return (
    sniffMagic(head) ??
    sniffIsoMedia(head) ??
    sniffMatroska(head) ??
    sniffId3(head) ??
    sniffTransportStream(head) ??
    sniffAudioFrames(head, 0) ??
    sniffLatm(head)
  );
}

function sniffMagic(head: Uint8Array): Container | undefined {
  const found = MAGICS.find(({ at, bytes }) => matches(head, at, bytes))?.container;
  // AC-3's sync word is two bytes only: ask for a second frame's worth of header as well.
  return found?.demuxer === 'ac3' ? sniffAc3(head, found) : found;
}

function matches(head: Uint8Array, at: number, bytes: string): boolean {
  if (head.length < at + bytes.length) return false;
  // A literal dot occurs in one magic only, at its first place.
  return [...bytes].every(
    (byte, index) => (byte === '.' && index > 0) || head[at + index] === byte.charCodeAt(0),
  );
}

function sniffIsoMedia(head: Uint8Array): Container | undefined {
  const type = latin1(head, 4, 4);
  if (type === 'ftyp') {
    const brand = latin1(head, 8, 4);
    const name = BRANDS[brand] ?? BRANDS[brand.slice(0, 3)];
    return name === undefined ? MP4 : { ...MP4, name };
  }
  return QUICKTIME_BOXES.has(type) ? { ...MP4, name: 'mov' } : undefined;
}

function sniffMatroska(head: Uint8Array): Container | undefined {
  if (!matches(head, 0, '\x1a\x45\xdf\xa3')) return undefined; // RFC 8794 section 11.2.1: EBML
  const isWebm = latin1(head, 0, 128).includes('webm');
  return isWebm ? { ...MATROSKA, name: 'webm' } : MATROSKA;
}

/** ID3v2.4 section 3.1: a tag in front of MP3, ADTS AAC or FLAC. */
function sniffId3(head: Uint8Array): Container | undefined {
  if (!matches(head, 0, 'ID3') || head.length < 10) return undefined;
  const tagBytes = 10 + [6, 7, 8, 9].reduce((size, at) => size * 128 + (byteAt(head, at) & 0x7f), 0);
  // A large picture hides the audio: assume MP3, for which ID3 was made.
  if (tagBytes + 8 > head.length) return MP3;
  const audio = head.subarray(tagBytes);
  return sniffMagic(audio) ?? sniffAudioFrames(audio, 0) ?? MP3;
}

/** ISO/IEC 13818-1 packets: 188 bytes; AVCHD 192 (timestamp first), 204 with error correction. */
function sniffTransportStream(head: Uint8Array): Container | undefined {
  const layouts = [
    { first: 0, size: 188 },
    { first: 4, size: 192 },
    { first: 0, size: 204 },
  ];
  const fits = layouts.some(
    ({ first, size }) =>
      head.length > first + 2 * size && [0, 1, 2].every((packet) => head[first + packet * size] === 0x47),
  );
  return fits ? TRANSPORT_STREAM : undefined;
}

/** MPEG audio or ADTS without a container: two headers in a row, as 11 set bits prove little. */
function sniffAudioFrames(head: Uint8Array, at: number): Container | undefined {
  if (byteAt(head, at) !== 0xff || (byteAt(head, at + 1) & 0xe0) !== 0xe0) return undefined;
  const isAdts = (byteAt(head, at + 1) & 0xf6) === 0xf0; // ISO/IEC 13818-7: layer is always 0
  const size = isAdts ? adtsFrameBytes(head, at) : mpegFrameBytes(head, at);
  if (size === undefined) return undefined;
  const next = at + size;
  const isLast = next + 1 >= head.length;
  const nextIsFrame = byteAt(head, next) === 0xff && (byteAt(head, next + 1) & 0xe0) === 0xe0;
  if (!isLast && !nextIsFrame) return undefined;
  return isAdts ? AAC : MP3;
}

/** ISO/IEC 14496-3 section 1.7.2: 11 bits of sync, 13 of length. Three, as sync proves little. */
function sniffLatm(head: Uint8Array): Container | undefined {
  let at = 0;
  for (let frame = 0; frame < 3; frame += 1) {
    if (byteAt(head, at) !== 0x56 || (byteAt(head, at + 1) & 0xe0) !== 0xe0) return undefined;
    at += 3 + (((byteAt(head, at + 1) & 0x1f) << 8) | byteAt(head, at + 2));
  }
  return LATM;
}

function adtsFrameBytes(head: Uint8Array, at: number): number | undefined {
  const size =
    ((byteAt(head, at + 3) & 0x03) << 11) | (byteAt(head, at + 4) << 3) | (byteAt(head, at + 5) >> 5);
  return size > 7 ? size : undefined;
}

// ISO/IEC 11172-3: kbit/s by bitrate_index; layers II and III, and the lower set of 13818-3.
const KBPS_V1: Readonly<Record<number, readonly number[]>> = {
  2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
};
const KBPS_V2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const SAMPLE_RATES_V1 = [44100, 48000, 32000];

/** Length of a frame of layer II or III; undefined for other bytes, and without a bitrate. */
export function mpegFrameBytes(head: Uint8Array, at: number): number | undefined {
  const version = (byteAt(head, at + 1) >> 3) & 3; // 3: MPEG-1, 2: MPEG-2, 0: MPEG-2.5
  const layer = 4 - ((byteAt(head, at + 1) >> 1) & 3);
  const rate = SAMPLE_RATES_V1[(byteAt(head, at + 2) >> 2) & 3];
  const table = version === 3 ? KBPS_V1[layer] : KBPS_V2;
  const kbps = table?.[byteAt(head, at + 2) >> 4];
  if (version === 1 || (layer !== 2 && layer !== 3) || rate === undefined || !kbps) return undefined;
  const divisor = version === 3 ? 1 : version === 2 ? 2 : 4;
  const padding = (byteAt(head, at + 2) >> 1) & 1;
  const samples = layer === 3 && version !== 3 ? 72 : 144;
  return Math.floor((samples * kbps * 1000 * divisor) / rate) + padding;
}

function sniffAc3(head: Uint8Array, found: Container): Container | undefined {
  // ATSC A/52 section 5.4: bsid, at the same position, is at most 10 in AC-3, 16 in E-AC-3.
  const bsid = byteAt(head, 5) >> 3;
  if (bsid > 10 && bsid <= 16) return EAC3;
  return bsid <= 10 && byteAt(head, 4) >> 6 !== 3 ? found : undefined;
}

function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

function latin1(bytes: Uint8Array, at: number, length: number): string {
  return Buffer.from(bytes.subarray(at, at + length)).toString('latin1');
}
