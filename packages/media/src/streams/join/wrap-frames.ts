/**
 * Puts frames into a transport stream (ISO/IEC 13818-1), which says when each plays: for packed
 * audio with holes.
 */
import { type FileHandle, open, rename } from 'node:fs/promises';
import { FrameReader } from '../segments/frames.ts';
import { readAt } from './part.ts';
import { PACKET_BYTES, TICKS_PER_SECOND } from './transport-packets.ts';

/** Frames that follow one another. */
export interface Stretch {
  /** Where they begin in the file, bytes. */
  readonly at: number;
  /** When the first plays. */
  readonly startSeconds: number;
}

interface Frames {
  /** Of their file, in whose place the transport stream is put. */
  readonly path: string;
  /** ffmpeg's demuxer of them. */
  readonly demuxer: string;
  readonly stretches: readonly Stretch[];
}

/** stream_type (table 2-34), and of Dolby's streams in ATSC A/53. */
const STREAM_TYPES: Readonly<Record<string, number>> = { aac: 0x0f, mp3: 0x03, ac3: 0x81, eac3: 0x87 };

const PROGRAM_PID = 0x1000;
const SOUND_PID = 0x100;

/** Of a PES packet: ffmpeg rounds the times of frames that have none. */
const MAX_PES_SECONDS = 0.25;
const WINDOW_BYTES = 256 * 1024;

/** @returns the size of the new file, bytes */
export async function wrapFrames(
  { path, demuxer, stretches }: Frames,
  makeRoom: (bytes: number) => Promise<void>,
): Promise<number> {
  const wrapped = `${path}.ts`;
  await using from = await open(path, 'r');
  await using to = await open(wrapped, 'wx', 0o600);
  const { size } = await from.stat();
  const muxer = new Muxer(to, makeRoom);
  await muxer.tables(STREAM_TYPES[demuxer] ?? 0);
  for (const [nth, { at, startSeconds }] of stretches.entries()) {
    await wrapStretch(from, { at, end: stretches[nth + 1]?.at ?? size }, demuxer, startSeconds, muxer);
  }
  await rename(wrapped, path);
  await makeRoom(-size);
  return muxer.writtenBytes;
}

async function wrapStretch(
  file: FileHandle,
  { at: begin, end }: { readonly at: number; readonly end: number },
  demuxer: string,
  startSeconds: number,
  muxer: Muxer,
): Promise<void> {
  const reader = new FrameReader(demuxer);
  let seconds = startSeconds;
  let pending: Buffer[] = [];
  let pendingSeconds = 0;
  const flush = async (): Promise<void> => {
    if (pending.length > 0) await muxer.pes(Buffer.concat(pending), seconds);
    seconds += pendingSeconds;
    pending = [];
    pendingSeconds = 0;
  };
  for (let at = begin; at < end; at += WINDOW_BYTES) {
    for (const frame of reader.read(await readAt(file, at, Math.min(WINDOW_BYTES, end - at)))) {
      pending.push(frame.bytes);
      pendingSeconds += frame.seconds;
      if (pendingSeconds >= MAX_PES_SECONDS) await flush();
    }
  }
  await flush();
}

class Muxer {
  readonly #file: FileHandle;
  readonly #makeRoom: (bytes: number) => Promise<void>;
  #counter = 0;
  writtenBytes = 0;

  constructor(file: FileHandle, makeRoom: (bytes: number) => Promise<void>) {
    this.#file = file;
    this.#makeRoom = makeRoom;
  }

  /** PAT and PMT (sections 2.4.4.3 and 2.4.4.8). */
  async tables(streamType: number): Promise<void> {
    const pat = section(0x00, [0x00, 0x01, 0xe0 | (PROGRAM_PID >> 8), PROGRAM_PID & 0xff]);
    const pid = [0xe0 | (SOUND_PID >> 8), SOUND_PID & 0xff];
    const pmt = section(0x02, [...pid, 0xf0, 0x00, streamType, ...pid, 0xf0, 0x00]);
    await this.#write(Buffer.concat([tablePacket(0, pat), tablePacket(PROGRAM_PID, pmt)]));
  }

  async pes(payload: Buffer, seconds: number): Promise<void> {
    const ticks = Math.round(seconds * TICKS_PER_SECOND) % 2 ** 33;
    const header = Buffer.from([0, 0, 1, 0xc0, 0, 0, 0x84, 0x80, 5, 0, 0, 0, 0, 0]);
    header.writeUInt16BE(payload.length + 8 > 0xffff ? 0 : payload.length + 8, 4);
    header[9] = 0x21 | (Math.floor(ticks / 2 ** 30) << 1);
    header.writeUInt16BE((Math.floor(ticks / 2 ** 15) % 2 ** 15) * 2 + 1, 10);
    header.writeUInt16BE((ticks % 2 ** 15) * 2 + 1, 12);
    const pes = Buffer.concat([header, payload]);
    const packets: Buffer[] = [];
    for (let at = 0; at < pes.length; ) {
      const part = pes.subarray(at, at + PACKET_BYTES - 4);
      const stuffing = PACKET_BYTES - 4 - part.length;
      const packet = Buffer.alloc(PACKET_BYTES, 0xff);
      packet.writeUInt16BE((at === 0 ? 0x4000 : 0) | SOUND_PID, 1);
      packet[0] = 0x47;
      packet[3] = (stuffing > 0 ? 0x30 : 0x10) | this.#counter;
      if (stuffing > 0) packet[4] = stuffing - 1;
      if (stuffing > 1) packet[5] = 0;
      part.copy(packet, 4 + stuffing);
      this.#counter = (this.#counter + 1) % 16;
      packets.push(packet);
      at += part.length;
    }
    await this.#write(Buffer.concat(packets));
  }

  async #write(bytes: Buffer): Promise<void> {
    await this.#makeRoom(bytes.length);
    await this.#file.writeFile(bytes);
    this.writtenBytes += bytes.length;
  }
}

/** Of a table with one section (section 2.4.4.3). */
function section(tableId: number, content: readonly number[]): Buffer {
  const head = [tableId, 0xb0, 5 + content.length + 4, 0x00, 0x01, 0xc1, 0x00, 0x00];
  const bytes = Buffer.from([...head, ...content]);
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(crc32(bytes));
  return Buffer.concat([bytes, crc]);
}

function tablePacket(pid: number, table: Buffer): Buffer {
  const packet = Buffer.alloc(PACKET_BYTES, 0xff);
  packet[0] = 0x47;
  packet.writeUInt16BE(0x4000 | pid, 1);
  packet[3] = 0x10;
  packet[4] = 0;
  table.copy(packet, 5);
  return packet;
}

/** Annex A: zlib's runs the other way around. */
function crc32(bytes: Buffer): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000_0000 ? (crc << 1) ^ 0x04c1_1db7 : crc << 1;
  }
  return crc >>> 0;
}
