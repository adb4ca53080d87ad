/** MPEG layer III frames (ISO/IEC 11172-3 and 13818-3): ends, audible data, the Info frame. */
import type { ByteReader } from '../byte-file.ts';
import { mpegFrameBytes } from '../frame-headers.ts';
import { Unjoinable } from './parts.ts';

interface FrameShape {
  readonly bytes: number;
  readonly isMpeg1: boolean;
  readonly isMono: boolean;
}

const HEADER_BYTES = 4;

/** @throws {Unjoinable} where no frame of layer III with a bitrate begins */
export function frameShape(header: Buffer): FrameShape {
  const word = header.length < HEADER_BYTES ? 0 : header.readUInt32BE(0);
  const isLayer3 = word >>> 21 === 0x7ff && ((word >>> 17) & 3) === 1;
  const bytes = isLayer3 ? mpegFrameBytes(header, 0) : undefined;
  if (bytes === undefined) throw new Unjoinable('no MP3 frame where one should begin');
  return { bytes, isMpeg1: ((word >>> 19) & 3) === 3, isMono: ((word >>> 6) & 3) === 3 };
}

/** @returns the frames of a file that holds nothing else from here on */
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

function sideInfoBytes({ isMpeg1, isMono }: FrameShape): number {
  if (isMpeg1) return isMono ? 17 : 32;
  return isMono ? 9 : 17;
}

/** main_data_begin has nine bits and counts bytes. */
const RESERVOIR_BYTES = 511;

/**
 * What decoders read of each frame: header, side information and main data, which may begin in
 * earlier frames (the bit reservoir). LAME fills the rest with meaningless bits that depend on its
 * earlier ones, so frames that sound alike differ as bytes.
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

/** Bits of a granule's side information per channel; it begins with its main data's length. */
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

// The Info frame has the tables of Xing and LAME (LAME Tag revision 1), by which players seek and
// find where audio begins and ends. The numbers are those of ffmpeg's muxer for the whole.

const TOC_ENTRIES = 100;

/** Bytes from the name "Info" on. */
const AT = { frames: 8, bytes: 12, toc: 16, delays: 141, musicLength: 148, musicCrc: 152, tagCrc: 154 };
const TABLE_BYTES = 156;

/** ffmpeg's tag checksum: in stereo MPEG-1 all before it; else itself as 0 too, zeros behind. */
const TAG_CRC_BYTES = 190;

/** The content of the Info frame, counted as frames pass. */
export class InfoTally {
  readonly #infoFrameBytes: number;
  readonly #seekPoints: SeekPoints;
  frames = 0;
  bytes = 0;
  #crc = 0;

  constructor(infoFrameBytes: number) {
    this.#infoFrameBytes = infoFrameBytes;
    this.#seekPoints = new SeekPoints();
  }

  add(frame: Buffer): void {
    this.frames += 1;
    this.bytes += frame.length;
    this.#crc = crc16(frame, this.#crc);
    this.#seekPoints.add(this.#infoFrameBytes + this.bytes);
  }

  /** @param samples of one channel, that went into the encoder */
  write(infoFrame: Buffer, frameSamples: number, samples: number): Buffer {
    const frame = Buffer.from(infoFrame);
    const at = infoAt(frame);
    const total = this.#infoFrameBytes + this.bytes;
    const delays = frame.readUIntBE(at + AT.delays, 3);
    const padding = Math.min(0xfff, this.frames * frameSamples - (delays >> 12) - samples);
    frame.writeUInt32BE(this.frames, at + AT.frames);
    frame.writeUInt32BE(total, at + AT.bytes);
    for (let entry = 0; entry < TOC_ENTRIES; entry += 1) {
      frame[at + AT.toc + entry] = this.#seekPoints.at(entry, total);
    }
    frame.writeUIntBE((delays & 0xfff000) | padding, at + AT.delays, 3);
    frame.writeUInt32BE(total, at + AT.musicLength);
    frame.writeUInt16BE(this.#crc, at + AT.musicCrc);
    frame.writeUInt16BE(0, at + AT.tagCrc);
    const covered = Buffer.concat([frame, Buffer.alloc(TAG_CRC_BYTES)], TAG_CRC_BYTES);
    frame.writeUInt16BE(crc16(covered, 0), at + AT.tagCrc);
    return frame;
  }
}

/** @throws {Unjoinable} when the frame holds no such table */
export function infoAt(frame: Buffer): number {
  const at = 4 + sideInfoBytes(frameShape(frame));
  const name = frame.toString('latin1', at, at + 4);
  if ((name !== 'Info' && name !== 'Xing') || frame.length < at + TABLE_BYTES) {
    throw new Unjoinable('the first frame of an MP3 is not an Info frame');
  }
  return at;
}

/** Some hundreds of evenly spaced positions: when there are too many, every second is dropped. */
class SeekPoints {
  static readonly #most = 400;
  #places: number[] = [];
  #everyFrames = 1;
  #seen = 0;

  add(place: number): void {
    this.#seen += 1;
    if (this.#seen < this.#everyFrames) return;
    this.#seen = 0;
    this.#places.push(place);
    if (this.#places.length === SeekPoints.#most) {
      this.#places = this.#places.filter((_, index) => index % 2 === 1);
      this.#everyFrames *= 2;
    }
  }

  /** The position at a hundredth of the time, in 256ths of the file. */
  at(entry: number, totalBytes: number): number {
    if (entry === 0) return 0;
    const place = this.#places[Math.floor((entry * this.#places.length) / TOC_ENTRIES)] ?? 0;
    return Math.min(255, Math.floor((256 * place) / totalBytes));
  }
}

const CRC16_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  return crc;
});

function crc16(bytes: Buffer, start: number): number {
  let crc = start;
  for (const byte of bytes) crc = (crc >> 8) ^ (CRC16_TABLE[(crc ^ byte) & 0xff] ?? 0);
  return crc;
}
