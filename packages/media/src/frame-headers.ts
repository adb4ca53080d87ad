/** Sound without a container, and streams of packets: what the header of one frame says. */

/** A form that consists of frames, each of which says where the next one begins. */
export interface Framing {
  readonly demuxer: string;
  /** The bytes at {@link lead} bytes after a frame's beginning. */
  readonly first: readonly number[];
  readonly lead?: number;
  /** How many frames in a row prove it: the less the bits of a header prove, the more. */
  readonly least: number;
  /** Bits of the header that all frames of a file share. */
  readonly shared?: readonly number[];
  /** 0 where no frame begins. */
  frameBytes(bytes: Uint8Array, at: number): number;
  /** How long the frame sounds that begins there; only of what HLS sends as packed audio. */
  frameSeconds?(bytes: Uint8Array, at: number): number;
  /** What a row has to begin with, where frames alone prove too little. */
  begins?(bytes: Uint8Array, at: number): boolean;
}

// ISO/IEC 11172-3: kbit/s by bitrate_index and layer; the lower set is that of 13818-3.
const KBPS_V1: Readonly<Record<number, readonly number[]>> = {
  1: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
};
const KBPS_V2: Readonly<Record<number, readonly number[]>> = {
  1: [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  3: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const SAMPLE_RATES_V1 = [44100, 48000, 32000];

/** Length of a frame of MPEG audio, by its header; undefined where none begins. */
export function mpegFrameBytes(bytes: Uint8Array, at: number): number | undefined {
  if (byteAt(bytes, at) !== 0xff || byteAt(bytes, at + 1) < 0xe0) return undefined;
  const version = (byteAt(bytes, at + 1) >> 3) & 3; // 3: MPEG-1, 2: MPEG-2, 0: MPEG-2.5
  const layer = 4 - ((byteAt(bytes, at + 1) >> 1) & 3);
  const rate = SAMPLE_RATES_V1[(byteAt(bytes, at + 2) >> 2) & 3];
  const kbps = (version === 3 ? KBPS_V1 : KBPS_V2)[layer]?.[byteAt(bytes, at + 2) >> 4];
  if (version === 1 || rate === undefined || !kbps) return undefined;
  const divisor = version === 3 ? 1 : version === 2 ? 2 : 4;
  const padding = (byteAt(bytes, at + 2) >> 1) & 1;
  if (layer === 1) return 4 * (Math.floor((12 * kbps * 1000 * divisor) / rate) + padding);
  const samples = layer === 3 && version !== 3 ? 72 : 144;
  return Math.floor((samples * kbps * 1000 * divisor) / rate) + padding;
}

/** Samples by layer (ISO/IEC 11172-3 section 2.1), of layer III in 13818-3 half as many. */
function mpegFrameSeconds(bytes: Uint8Array, at: number): number {
  const version = (byteAt(bytes, at + 1) >> 3) & 3;
  const layer = 4 - ((byteAt(bytes, at + 1) >> 1) & 3);
  const rate = SAMPLE_RATES_V1[(byteAt(bytes, at + 2) >> 2) & 3] ?? Number.POSITIVE_INFINITY;
  const divisor = version === 3 ? 1 : version === 2 ? 2 : 4;
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1152;
  return (samples * divisor) / rate;
}

/** ISO/IEC 14496-3 table 1.18; a frame has one block or up to four. */
const AAC_RATES = [
  ...[96_000, 88_200, 64_000, 48_000, 44_100, 32_000],
  ...[24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350],
];

function adtsFrameSeconds(bytes: Uint8Array, at: number): number {
  const rate = AAC_RATES[bits(bytes, at, 18, 4)] ?? Number.POSITIVE_INFINITY;
  return (1024 * ((byteAt(bytes, at + 6) & 3) + 1)) / rate;
}

const AC3_RATES = [48_000, 44_100, 32_000];

function ac3FrameSeconds(bytes: Uint8Array, at: number): number {
  return 1536 / (AC3_RATES[byteAt(bytes, at + 4) >> 6] ?? Number.POSITIVE_INFINITY);
}

/** Annex E: only the first independent substream counts; blocks have 256 samples. */
function eac3FrameSeconds(bytes: Uint8Array, at: number): number {
  if (byteAt(bytes, at + 5) >> 3 <= 10) return ac3FrameSeconds(bytes, at);
  if (bits(bytes, at, 16, 2) === 1 || bits(bytes, at, 18, 3) !== 0) return 0;
  const code = byteAt(bytes, at + 4) >> 6;
  const next = (byteAt(bytes, at + 4) >> 4) & 3;
  const rate = AC3_RATES[code === 3 ? next : code] ?? Number.POSITIVE_INFINITY;
  return code === 3 ? (2 * 6 * 256) / rate : (([1, 2, 3, 6][next] ?? 0) * 256) / rate;
}

/** ISO/IEC 13818-7: layer is always 0. */
function adtsFrameBytes(bytes: Uint8Array, at: number): number {
  const isHeader = byteAt(bytes, at) === 0xff && (byteAt(bytes, at + 1) & 0xf6) === 0xf0;
  if (!isHeader || ((byteAt(bytes, at + 2) >> 2) & 15) > 12) return 0;
  const size = bits(bytes, at, 30, 13);
  return size > 7 ? size : 0;
}

/** ISO/IEC 14496-3 section 1.7.2: 11 bits of sync, 13 of length. */
function latmFrameBytes(bytes: Uint8Array, at: number): number {
  const size = bits(bytes, at, 11, 13);
  return byteAt(bytes, at) === 0x56 && byteAt(bytes, at + 1) >= 0xe0 && size > 0 ? 3 + size : 0;
}

const AC3_KBPS = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];

/** ATSC A/52 section 5.4: bsid, at the same position, is at most 10 in AC-3. */
function ac3FrameBytes(bytes: Uint8Array, at: number): number {
  const kbps = AC3_KBPS[(byteAt(bytes, at + 4) & 0x3f) >> 1];
  const isHeader = bits(bytes, at, 0, 16) === 0x0b77 && byteAt(bytes, at + 5) >> 3 <= 10;
  if (!isHeader || kbps === undefined) return 0;
  const rate = byteAt(bytes, at + 4) >> 6; // 48, 44.1 and 32 kHz
  if (rate === 1) return 2 * (Math.floor((kbps * 96_000) / 44_100) + (byteAt(bytes, at + 4) & 1));
  return rate === 3 ? 0 : kbps * (rate === 0 ? 4 : 6);
}

/** Annex E: bsid 11 to 16; frames of AC-3 may be mixed in. */
function eac3FrameBytes(bytes: Uint8Array, at: number): number {
  const bsid = byteAt(bytes, at + 5) >> 3;
  if (bsid <= 10) return ac3FrameBytes(bytes, at);
  const isHeader = bits(bytes, at, 0, 16) === 0x0b77 && bsid <= 16;
  const isReserved = byteAt(bytes, at + 2) >> 6 === 3 || byteAt(bytes, at + 4) >> 4 === 15;
  return isHeader && !isReserved ? 2 * (bits(bytes, at, 21, 11) + 1) : 0;
}

/** ETSI TS 102 114: a core in words of 16 or 14 bits, of both byte orders, or an extension. */
function dtsFrameBytes(bytes: Uint8Array, at: number): number {
  const sync = bits(bytes, at, 0, 32);
  if (sync === 0x7ffe8001) return bits(bytes, at, 46, 14) + 1;
  if (sync === 0x64582025) {
    const isLong = bits(bytes, at, 42, 1) === 1;
    return isLong ? bits(bytes, at, 55, 20) + 1 : bits(bytes, at, 51, 16) + 1;
  }
  const isSwapped = sync === 0xfe7f0180 || sync === 0xff1f00e8;
  if (!isSwapped && sync !== 0x1fffe800) return 0;
  const word = (nth: number): number => {
    const [high, low] = [byteAt(bytes, at + 2 * nth), byteAt(bytes, at + 2 * nth + 1)];
    return isSwapped ? (low << 8) | high : (high << 8) | low;
  };
  if (sync === 0xfe7f0180) return (((word(2) & 3) << 12) | (word(3) >> 4)) + 1;
  const size = (((word(3) & 0x3ff) << 4) | ((word(4) >> 10) & 15)) + 1;
  return 2 * Math.floor((size * 8) / 14);
}

/** Access units say little; only some have a sync, which tells the two apart. */
function mlpFraming(demuxer: string, streamType: number): Framing {
  return {
    demuxer,
    first: [0xf8],
    lead: 4,
    least: 4,
    frameBytes: (bytes, at) => 2 * (bits(bytes, at, 4, 12) > 2 ? bits(bytes, at, 4, 12) : 0),
    begins: (bytes, at) => bits(bytes, at, 32, 32) === 0xf8726f00 + streamType,
  };
}

/** IEC 61834-2: a sequence of a frame, 150 blocks of 80 bytes; header and subcode come first. */
function dvSequenceBytes(bytes: Uint8Array, at: number): number {
  const isBlock = (block: number, type: number): boolean =>
    byteAt(bytes, block) === type && (byteAt(bytes, block + 1) & 15) === 7 && byteAt(bytes, block + 2) === 0;
  return isBlock(at, 0x1f) && isBlock(at + 80, 0x3f) ? 12_000 : 0;
}

/** ISO/IEC 13818-1 table 2-39 and 11172-1: a pack header, another header or a PES packet. */
function programStreamBytes(bytes: Uint8Array, at: number): number {
  if (bits(bytes, at, 0, 24) !== 1) return 0;
  const id = byteAt(bytes, at + 3);
  if (id === 0xba) {
    const next = byteAt(bytes, at + 4);
    if (next >> 6 === 1) return 14 + (byteAt(bytes, at + 13) & 7);
    return next >> 4 === 2 ? 12 : 0;
  }
  const size = bits(bytes, at, 32, 16);
  return id > 0xba && size > 0 ? 6 + size : 0;
}

/** RFC 3533 section 6. */
function oggPageBytes(bytes: Uint8Array, at: number): number {
  if (!startsWith(bytes, at, 'OggS\0')) return 0;
  const segments = byteAt(bytes, at + 26);
  const table = bytes.subarray(at + 27, at + 27 + segments);
  return table.reduce((size, segment) => size + segment, 27 + segments);
}

/** SMPTE ST 336: a key, a length of one or more bytes, a value. */
function mxfPacketBytes(bytes: Uint8Array, at: number): number {
  if (!startsWith(bytes, at, '\x06\x0e\x2b\x34')) return 0;
  const length = byteAt(bytes, at + 16);
  if (length < 0x80) return 17 + length;
  const digits = length & 0x7f;
  return digits > 0 && digits <= 8 ? 17 + digits + bits(bytes, at, 136, digits * 8) : 0;
}

/** Adobe FLV 10.1, E.4.1: a tag, and its size once more behind it. */
function flvTagBytes(bytes: Uint8Array, at: number): number {
  const size = 11 + bits(bytes, at, 8, 24);
  const isTag = [8, 9, 18].includes(byteAt(bytes, at)) && bits(bytes, at, 64, 24) === 0;
  return isTag && bits(bytes, at + size, 0, 32) === size ? size + 4 : 0;
}

/** ffmpeg's demuxers skip bytes before the first frame. If two explain as much, the first wins. */
export const FRAMINGS: readonly Framing[] = [
  {
    demuxer: 'mp3',
    first: [0xff],
    least: 4,
    // version, layer and sample rate
    shared: [0xff, 0xfe, 0x0c],
    frameBytes: (bytes, at) => mpegFrameBytes(bytes, at) ?? 0,
    frameSeconds: mpegFrameSeconds,
  },
  {
    demuxer: 'aac',
    first: [0xff],
    least: 3,
    shared: [0xff, 0xfe, 0xfd, 0xc0],
    frameBytes: adtsFrameBytes,
    frameSeconds: adtsFrameSeconds,
  },
  { demuxer: 'loas', first: [0x56], least: 3, frameBytes: latmFrameBytes },
  {
    demuxer: 'ac3',
    first: [0x0b],
    least: 3,
    shared: [0, 0, 0, 0, 0xc0],
    frameBytes: ac3FrameBytes,
    frameSeconds: ac3FrameSeconds,
  },
  {
    demuxer: 'eac3',
    first: [0x0b],
    least: 3,
    shared: [0, 0, 0, 0, 0xc0],
    frameBytes: eac3FrameBytes,
    frameSeconds: eac3FrameSeconds,
  },
  { demuxer: 'dts', first: [0x7f, 0xfe, 0x1f, 0xff, 0x64], least: 2, frameBytes: dtsFrameBytes },
  mlpFraming('truehd', 0xba),
  mlpFraming('mlp', 0xbb),
  { demuxer: 'dv', first: [0x1f], least: 3, frameBytes: dvSequenceBytes },
  { demuxer: 'mpeg', first: [0], least: 3, frameBytes: programStreamBytes },
  // Only with a stream's first page, which says what it holds.
  {
    demuxer: 'ogg',
    first: [0x4f],
    least: 1,
    frameBytes: oggPageBytes,
    begins: (bytes, at) => (byteAt(bytes, at + 5) & 2) === 2,
  },
  // SMPTE ST 377-1 section 7: with the key of the header's partition pack
  {
    demuxer: 'mxf',
    first: [6],
    least: 1,
    frameBytes: mxfPacketBytes,
    begins: (bytes, at) => startsWith(bytes, at, '\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02\x01\x01\x02'),
  },
  { demuxer: 'flv', first: [8, 9, 18], least: 2, frameBytes: flvTagBytes },
];

/** Whether these bytes stand there; `.` stands for any byte, but first. */
export function startsWith(bytes: Uint8Array, at: number, magic: string): boolean {
  for (let index = 0; index < magic.length; index += 1) {
    if (bytes[at + index] !== magic.charCodeAt(index) && (magic[index] !== '.' || index === 0)) return false;
  }
  return at + magic.length <= bytes.length;
}

export function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

/** A number of `count` bits, most significant first; 0 for those past the end. */
export function bits(bytes: Uint8Array, at: number, from: number, count: number): number {
  let value = 0;
  let byte = at + (from >> 3);
  const last = at + ((from + count - 1) >> 3);
  // Not by shifts, which know 32 bits.
  for (; byte <= last; byte += 1) value = value * 256 + byteAt(bytes, byte);
  const behind = 7 - ((from + count - 1) & 7);
  return Math.floor(value / 2 ** behind) % 2 ** count;
}
