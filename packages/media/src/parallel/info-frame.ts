/**
 * The Info frame that stands before the frames of an MP3: the tables of Xing and LAME (LAME Tag revision 1), by which players seek and
 * know where the sound begins and ends. The numbers are those that ffmpeg's muxer would write for the whole.
 */
import { frameShape, sideInfoBytes } from './mp3-frames.ts';
import { Unjoinable } from './parts.ts';

const TOC_ENTRIES = 100;

/** Bytes from the name "Info" on. */
const AT = { frames: 8, bytes: 12, toc: 16, delays: 141, musicLength: 148, musicCrc: 152, tagCrc: 154 };
const TABLE_BYTES = 156;

/** What ffmpeg's checksum of the tag covers: all before it in a stereo frame of MPEG-1; in others itself too, as 0, and past the frame's end zeros. */
const TAG_CRC_BYTES = 190;

/** What stands in the Info frame, counted while the frames go by. */
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
    throw new Unjoinable('the first frame of an MP3 is no Info frame');
  }
  return at;
}

/** Some hundreds of places in the file, at even distances in time, whatever its length: every second one is dropped when they become too many. */
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

  /** The place of a hundredth of the time, in 256ths of the file. */
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
