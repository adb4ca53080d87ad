/** Frames of MPEG audio layer III (ISO/IEC 11172-3 and 13818-3): where they end, and what of them sounds. */
import type { ByteReader } from '../byte-file.ts';
import { Unjoinable } from './parts.ts';

interface FrameShape {
  readonly bytes: number;
  readonly isMpeg1: boolean;
  readonly isMono: boolean;
}

const HEADER_BYTES = 4;
const MPEG1_KBPS = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const MPEG2_KBPS = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const MPEG1_RATES = [44_100, 48_000, 32_000];

/** @throws {Unjoinable} where no frame of layer III with a bitrate begins */
export function frameShape(header: Buffer): FrameShape {
  const word = header.length < HEADER_BYTES ? 0 : header.readUInt32BE(0);
  const version = (word >>> 19) & 3;
  const isMpeg1 = version === 3;
  const kbps = (isMpeg1 ? MPEG1_KBPS : MPEG2_KBPS)[(word >>> 12) & 15] ?? 0;
  const rate = (MPEG1_RATES[(word >>> 10) & 3] ?? 0) / (isMpeg1 ? 1 : version === 2 ? 2 : 4);
  const isLayer3 = word >>> 21 === 0x7ff && ((word >>> 17) & 3) === 1;
  if (!isLayer3 || kbps === 0 || rate === 0) throw new Unjoinable('no MP3 frame where one should begin');
  const padding = (word >>> 9) & 1;
  return {
    bytes: Math.floor(((isMpeg1 ? 144_000 : 72_000) * kbps) / rate) + padding,
    isMpeg1,
    isMono: ((word >>> 6) & 3) === 3,
  };
}

/** @returns the frames of a file that holds nothing else any more */
export async function* mp3Frames(reader: ByteReader): AsyncGenerator<Buffer> {
  for (;;) {
    const header = await reader.peek(HEADER_BYTES);
    if (header.length === 0) return;
    const { bytes } = frameShape(header);
    const frame = await reader.peek(bytes);
    if (frame.length < bytes) throw new Unjoinable('an MP3 frame is cut off');
    reader.skip(bytes);
    yield frame;
  }
}

export function sideInfoBytes({ isMpeg1, isMono }: FrameShape): number {
  if (isMpeg1) return isMono ? 17 : 32;
  return isMono ? 9 : 17;
}

/** main_data_begin has nine bits and counts bytes. */
const RESERVOIR_BYTES = 511;

/**
 * What decoders read of each frame: header, side information, and its main data, which may begin in the frames before (the bit
 * reservoir). LAME fills what is left over with bits that mean nothing and depend on how many it has filled so since it began, so that
 * frames that sound alike differ as bytes.
 * @returns null for a frame whose main data begins before the first one given
 */
export function soundOfFrames(frames: readonly Buffer[]): (Buffer | null)[] {
  let reservoir = Buffer.alloc(0);
  return frames.map((frame) => {
    const shape = frameShape(frame);
    const mainAt = HEADER_BYTES + sideInfoBytes(shape);
    const { begin, bits } = mainData(frame, shape);
    const before = reservoir;
    reservoir = Buffer.concat([before.subarray(-RESERVOIR_BYTES), frame.subarray(mainAt)]);
    if (begin > before.length) return null;
    const from = Math.min(before.length, RESERVOIR_BYTES) - begin;
    const main = reservoir.subarray(from, from + Math.ceil(bits / 8));
    const sound = Buffer.concat([frame.subarray(0, mainAt), main]);
    const last = sound.length - 1;
    if (bits % 8 !== 0) sound[last] = (sound[last] ?? 0) & (0xff << (8 - (bits % 8)));
    return sound;
  });
}

/** Bits of a granule's side information for one channel, which begins with the length of its main data. */
const GRANULE_BITS = { mpeg1: 59, mpeg2: 63 };

function mainData(frame: Buffer, { isMpeg1, isMono }: FrameShape): { begin: number; bits: number } {
  const channels = isMono ? 1 : 2;
  const sideAt = HEADER_BYTES * 8;
  // main_data_begin, private bits, scfsi of each channel (MPEG-1 alone)
  const lead = isMpeg1 ? (isMono ? 9 + 5 + 4 : 9 + 3 + 8) : 8 + channels;
  const stride = isMpeg1 ? GRANULE_BITS.mpeg1 : GRANULE_BITS.mpeg2;
  let bits = 0;
  for (let part = 0; part < (isMpeg1 ? 2 : 1) * channels; part += 1) {
    bits += readBits(frame, sideAt + lead + part * stride, 12);
  }
  return { begin: readBits(frame, sideAt, isMpeg1 ? 9 : 8), bits };
}

function readBits(bytes: Buffer, at: number, count: number): number {
  let value = 0;
  for (let bit = at; bit < at + count; bit += 1) {
    value = value * 2 + (((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1);
  }
  return value;
}
