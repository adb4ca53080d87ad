/** MP3 frames and Ogg pages read by the word of the standards, with nothing of src/: what is under test cannot agree with itself. */
import { readFile } from 'node:fs/promises';

const KBPS = {
  mpeg1: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  mpeg2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};

export interface Mp3 {
  readonly infoFrame: Buffer;
  readonly frames: readonly Buffer[];
}

/** Of an MP3 with an ID3v2 tag or without, and an Info frame (ISO/IEC 11172-3 section 2.4.2.3). */
export async function mp3Of(file: string): Promise<Mp3> {
  const bytes = await readFile(file);
  const sizes = [...bytes.subarray(6, 10)];
  let at =
    bytes.toString('latin1', 0, 3) === 'ID3' ? 10 + sizes.reduce((sum, byte) => sum * 128 + byte, 0) : 0;
  const frames: Buffer[] = [];
  while (at < bytes.length) {
    const header = bytes.readUInt32BE(at);
    if (header >>> 21 !== 0x7ff) throw new Error(`no frame at ${at}`);
    const isMpeg1 = ((header >>> 19) & 3) === 3;
    const divisor = isMpeg1 ? 1 : ((header >>> 19) & 3) === 2 ? 2 : 4;
    const rate = ([44_100, 48_000, 32_000][(header >>> 10) & 3] ?? 0) / divisor;
    const kbps = KBPS[isMpeg1 ? 'mpeg1' : 'mpeg2'][(header >>> 12) & 15] ?? 0;
    const length = Math.floor(((isMpeg1 ? 144_000 : 72_000) * kbps) / rate) + ((header >>> 9) & 1);
    frames.push(bytes.subarray(at, at + length));
    at += length;
  }
  const [infoFrame, ...rest] = frames;
  if (infoFrame === undefined) throw new Error('no frames');
  return { infoFrame, frames: rest };
}

/** The tag of Xing and LAME (LAME Tag revision 1). */
export function infoOf({ infoFrame }: Mp3) {
  const at = Math.max(infoFrame.indexOf('Info'), infoFrame.indexOf('Xing'));
  const delays = infoFrame.readUIntBE(at + 141, 3);
  return {
    frames: infoFrame.readUInt32BE(at + 8),
    bytes: infoFrame.readUInt32BE(at + 12),
    seekPoints: [...infoFrame.subarray(at + 16, at + 116)],
    delay: delays >> 12,
    padding: delays & 0xfff,
    musicLength: infoFrame.readUInt32BE(at + 148),
    musicCrc: infoFrame.readUInt16BE(at + 152),
    tagCrc: infoFrame.readUInt16BE(at + 154),
  };
}

/** CRC-16/ARC, bit by bit. */
export function crc16(...pieces: readonly Buffer[]): number {
  let crc = 0;
  for (const byte of Buffer.concat(pieces)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1;
  }
  return crc;
}

export interface OggPage {
  readonly flags: number;
  readonly granule: number;
  readonly serial: number;
  readonly sequence: number;
  readonly crc: number;
  /** What the checksum ought to be. */
  readonly rightCrc: number;
  readonly lacing: readonly number[];
  readonly body: Buffer;
}

/** RFC 3533 section 6. */
export async function oggPagesOf(file: string): Promise<OggPage[]> {
  const bytes = await readFile(file);
  const pages: OggPage[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes.toString('latin1', at, at + 4) !== 'OggS') throw new Error(`no page at ${at}`);
    const lacing = [...bytes.subarray(at + 27, at + 27 + (bytes[at + 26] ?? 0))];
    const bodyAt = at + 27 + lacing.length;
    const end = bodyAt + lacing.reduce((sum, length) => sum + length, 0);
    const page = Buffer.from(bytes.subarray(at, end));
    page.fill(0, 22, 26);
    pages.push({
      flags: bytes[at + 5] ?? 0,
      granule: Number(bytes.readBigInt64LE(at + 6)),
      serial: bytes.readUInt32LE(at + 14),
      sequence: bytes.readUInt32LE(at + 18),
      crc: bytes.readUInt32LE(at + 22),
      rightCrc: crc32(page),
      lacing,
      body: bytes.subarray(bodyAt, end),
    });
    at = end;
  }
  return pages;
}

function crc32(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit += 1) crc = crc < 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  }
  return crc >>> 0;
}

/** All packets but the two headers. */
export function opusPacketsOf(pages: readonly OggPage[]): Buffer[] {
  const packets: Buffer[] = [];
  let begun: Buffer[] = [];
  for (const { lacing, body } of pages) {
    let at = 0;
    for (const length of lacing) {
      begun.push(body.subarray(at, at + length));
      at += length;
      if (length < 255) {
        packets.push(Buffer.concat(begun));
        begun = [];
      }
    }
  }
  return packets.slice(2);
}
