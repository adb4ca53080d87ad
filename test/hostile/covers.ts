/** Pictures that are a thousand times larger as pixels than as files. */
import { constants, crc32, deflateRawSync } from 'node:zlib';
import { words } from './boxes.ts';

const ROWS_AT_ONCE = 100;

/**
 * RFC 2083. One compressed stretch of black rows again and again: nobody has to hold the picture to make it.
 * @param side in pixels of three bytes, a multiple of 100.
 */
export function blackPng(side: number): Buffer {
  const rowBytes = 1 + side * 3;
  const stretch = deflateRawSync(Buffer.alloc(rowBytes * ROWS_AT_ONCE), {
    finishFlush: constants.Z_FULL_FLUSH,
  });
  // RFC 1950: of n zeros, Adler-32 is n mod 65521 in the upper half and 1 in the lower.
  const adler = (((rowBytes * side) % 65_521) * 65_536 + 1) >>> 0;
  const data = [
    Buffer.from([0x78, 0x01]),
    ...Array<Buffer>(side / ROWS_AT_ONCE).fill(stretch),
    Buffer.from([0x03, 0x00]),
    words(adler),
  ];
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', Buffer.concat([words(side, side), Buffer.from([8, 2, 0, 0, 0])])),
    pngChunk('IDAT', Buffer.concat(data)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  return Buffer.concat([words(content.length), body, words(crc32(body))]);
}

/** ID3v2.3 section 4.15, in front of an MP3. */
export function withId3Cover(mp3: Buffer, png: Buffer): Buffer {
  const picture = Buffer.concat([Buffer.from('\0image/png\0\x03\0', 'latin1'), png]);
  const frame = Buffer.concat([Buffer.from('APIC'), words(picture.length), Buffer.from([0, 0]), picture]);
  const size = [21, 14, 7, 0].map((shift) => (frame.length >> shift) & 0x7f);
  return Buffer.concat([Buffer.from([0x49, 0x44, 0x33, 3, 0, 0, ...size]), frame, mp3]);
}

/** RFC 9639 section 8.8, behind STREAMINFO. */
export function withFlacCover(flac: Buffer, png: Buffer): Buffer {
  const STREAMINFO_END = 42;
  const block = Buffer.concat([
    words(3, 9),
    Buffer.from('image/png'),
    words(0, png.readUInt32BE(16), png.readUInt32BE(20), 24, 0, png.length),
    png,
  ]);
  const head = words(((6 << 24) | block.length) >>> 0);
  return Buffer.concat([flac.subarray(0, STREAMINFO_END), head, block, flac.subarray(STREAMINFO_END)]);
}
