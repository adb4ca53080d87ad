/** Splits and joins Opus packets (RFC 6716 section 3) without decoding their frames (pure). */

/** Milliseconds of a frame by configuration (RFC 6716 section 3.1, table 2). */
const FRAME_MS = [
  ...[10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 40, 60],
  ...[10, 20, 10, 20],
  ...[2.5, 5, 10, 20, 2.5, 5, 10, 20, 2.5, 5, 10, 20, 2.5, 5, 10, 20],
];

const COUNT_MASK = 0x3f;
const PADDED = 0x40;
const VARIABLE = 0x80;
/** A length below it takes one byte (section 3.2.1). */
const LONG_LENGTH = 252;
/** The largest length that two bytes can hold; no frame is longer (section 3.4, R2). */
const LONGEST_FRAME = 1275;
/** 120 ms (section 3.4, R5). */
const LONGEST_PACKET_SAMPLES = 5760;

/** @param head the packet, or its first two bytes. @returns samples at 48 kHz */
export function packetSamples(head: Buffer): number {
  const [toc = 0, count = 0] = head;
  const frames = [1, 2, 2, count & COUNT_MASK][toc & 3] ?? 0;
  return frames * (FRAME_MS[toc >> 3] ?? 0) * 48;
}

/** Frames of one kind: of the same configuration and channels. */
interface OpusFrames {
  /** The packet's first byte without its frame count code: configuration × 8, + 4 for stereo. */
  readonly kind: number;
  readonly frames: readonly Buffer[];
}

/** @returns null for what no decoder accepts (section 3.4) */
export function framesOf(packet: Buffer): OpusFrames | null {
  const [toc] = packet;
  if (toc === undefined || packetSamples(packet) > LONGEST_PACKET_SAMPLES) return null;
  const frames = split(packet, toc & 3);
  if (frames === null || frames.some(({ length }) => length > LONGEST_FRAME)) return null;
  return { kind: toc & ~3, frames };
}

function split(packet: Buffer, code: number): Buffer[] | null {
  const rest = packet.subarray(1);
  if (code === 0) return [rest];
  if (code === 1) return equalFrames(rest, 2);
  if (code === 2) {
    const first = lengthAt(rest, 0);
    return first === null ? null : framesOfLengths(rest.subarray(first.bytes), [first.length]);
  }
  return splitMany(rest);
}

/** Code 3: count and flags, length of the padding, lengths of all frames but the last. */
function splitMany(rest: Buffer): Buffer[] | null {
  const [flags] = rest;
  if (flags === undefined) return null;
  const count = flags & COUNT_MASK;
  if (count === 0) return null;
  let at = 1;
  let padding = 0;
  if ((flags & PADDED) !== 0) {
    for (let byte = 255; byte === 255; at += 1) {
      byte = rest[at] ?? 0;
      padding += byte === 255 ? 254 : byte;
    }
  }
  const end = rest.length - padding;
  if (end < at) return null;
  if ((flags & VARIABLE) === 0) return equalFrames(rest.subarray(at, end), count);
  const lengths: number[] = [];
  while (lengths.length < count - 1) {
    const next = lengthAt(rest, at);
    if (next === null) return null;
    lengths.push(next.length);
    at += next.bytes;
  }
  return at > end ? null : framesOfLengths(rest.subarray(at, end), lengths);
}

function equalFrames(bytes: Buffer, count: number): Buffer[] | null {
  const length = bytes.length / count;
  return Number.isInteger(length)
    ? Array.from({ length: count }, (_, nth) => bytes.subarray(nth * length, (nth + 1) * length))
    : null;
}

/** The last frame gets the remaining bytes. */
function framesOfLengths(bytes: Buffer, lengths: readonly number[]): Buffer[] | null {
  const frames: Buffer[] = [];
  let at = 0;
  for (const length of lengths) {
    if (at + length > bytes.length) return null;
    frames.push(bytes.subarray(at, at + length));
    at += length;
  }
  return [...frames, bytes.subarray(at)];
}

function lengthAt(bytes: Buffer, at: number): { length: number; bytes: number } | null {
  const first = bytes[at];
  if (first === undefined) return null;
  if (first < LONG_LENGTH) return { length: first, bytes: 1 };
  const second = bytes[at + 1];
  return second === undefined ? null : { length: first + second * 4, bytes: 2 };
}

/** The shortest packet of one or more frames; a single one stays as it was. */
export function packetOf({ kind, frames }: OpusFrames): Buffer {
  const [first = Buffer.alloc(0)] = frames;
  if (frames.length === 1) return Buffer.concat([Buffer.of(kind), first]);
  const areEqual = frames.every(({ length }) => length === first.length);
  if (frames.length === 2) {
    const head = areEqual ? Buffer.of(kind | 1) : Buffer.of(kind | 2, ...lengthBytes(first.length));
    return Buffer.concat([head, ...frames]);
  }
  const lengths = areEqual ? [] : frames.slice(0, -1).flatMap(({ length }) => lengthBytes(length));
  const flags = frames.length | (areEqual ? 0 : VARIABLE);
  return Buffer.concat([Buffer.of(kind | 3, flags, ...lengths), ...frames]);
}

function lengthBytes(length: number): number[] {
  if (length < LONG_LENGTH) return [length];
  const first = LONG_LENGTH + (length & 3);
  return [first, (length - first) >> 2];
}
