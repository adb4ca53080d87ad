/**
 * Ogg (RFC 3533) with one stream of Opus (RFC 7845): reads packets from pages, writes them into new
 * ones, and counts how long it is.
 */
import { open } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ByteReader, type ByteWriter } from '../byte-file.ts';
import { packetSamples } from './opus-frames.ts';

export const HEADER_BYTES = 27;
export const AT = { flags: 5, granule: 6, serial: 14, sequence: 18, crc: 22, segments: 26 };
const CONTINUED = 1;
export const FIRST = 2;
export const LAST = 4;
const MOST_SEGMENTS = 255;

/** ffmpeg ends a page with the packet that makes it so long, so that players seek quickly. */
const PAGE_SAMPLES = 48_000;

/** The bytes are not an Ogg stream that this project can read. */
export class BrokenOgg extends Error {
  override readonly name = 'BrokenOgg';
}

/** A whole page, lacing values included; undefined at the end of the file. */
export async function oggPage(reader: ByteReader): Promise<Buffer | undefined> {
  const header = await reader.peek(HEADER_BYTES);
  if (header.length === 0) return undefined;
  const segments = header[AT.segments] ?? 0;
  const table = await reader.peek(HEADER_BYTES + segments);
  if (header.toString('latin1', 0, 4) !== 'OggS' || table.length < HEADER_BYTES + segments) {
    throw new BrokenOgg('no Ogg page where one should begin');
  }
  const bytes = table.subarray(HEADER_BYTES).reduce((sum, lacing) => sum + lacing, HEADER_BYTES + segments);
  const page = await reader.peek(bytes);
  if (page.length < bytes) throw new BrokenOgg('an Ogg page is cut off');
  reader.skip(bytes);
  // One read may hold 100,000 packets, and microtasks block everything else.
  await nextTurn();
  return page;
}

/** A page's granule position and lacing values, and where its packets begin. */
export function pageHead(page: Buffer): { granule: number; lacing: Buffer; bodyAt: number } {
  const bodyAt = HEADER_BYTES + (page[AT.segments] ?? 0);
  const granule = Number(page.readBigInt64LE(AT.granule));
  return { granule, lacing: page.subarray(HEADER_BYTES, bodyAt), bodyAt };
}

/** Whether its checksum matches its bytes. */
export function isIntact(page: Buffer): boolean {
  const bytes = Buffer.from(page);
  bytes.writeUInt32LE(0, AT.crc);
  return crc32(bytes) === page.readUInt32LE(AT.crc);
}

/** Gives pages another serial number: each stream in one file has its own (RFC 3533 section 4). */
export function withSerial(stream: Buffer, serial: number): Buffer {
  const pages = Buffer.from(stream);
  for (let at = 0; at < pages.length; ) {
    const segments = pages.readUInt8(at + AT.segments);
    const table = pages.subarray(at + HEADER_BYTES, at + HEADER_BYTES + segments);
    const bytes = table.reduce((sum, lacing) => sum + lacing, HEADER_BYTES + segments);
    const page = pages.subarray(at, at + bytes);
    page.writeUInt32LE(serial, AT.serial);
    page.writeUInt32LE(0, AT.crc);
    page.writeUInt32LE(crc32(page), AT.crc);
    at += bytes;
  }
  return pages;
}

/** The packets of all pages that follow. */
export async function* oggPackets(reader: ByteReader): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  for (let page = await oggPage(reader); page !== undefined; page = await oggPage(reader)) {
    const { lacing, bodyAt } = pageHead(page);
    let from = bodyAt;
    let to = from;
    for (const bytes of lacing) {
      to += bytes;
      if (bytes < 255) {
        const end = page.subarray(from, to);
        yield begun.length === 0 ? end : Buffer.concat([...begun, end]);
        begun = [];
        from = to;
      }
    }
    if (from < to) begun.push(page.subarray(from, to));
  }
}

/** OpusHead and OpusTags (RFC 7845 section 3). */
export const HEADER_PACKETS = 2;
export const PRE_SKIP_AT = 10;

/**
 * How long a file is, by its packets less the pre-skip and the end of the last page (RFC 7845
 * section 4). Decoding it would take as long as copying it twenty times.
 * @returns samples of one channel at 48 kHz
 */
export async function opusSamples(path: string): Promise<number> {
  await using file = await open(path);
  const reader = new ByteReader(file);
  let preSkip = 0;
  let headers = 0;
  let total = 0;
  let endOfPageBefore = 0;
  let cutOff = 0;
  // Of a packet that continues on the next page only its beginning matters.
  let head: Buffer | undefined;
  for (let page = await oggPage(reader); page !== undefined; page = await oggPage(reader)) {
    let samples = 0;
    const { granule, lacing, bodyAt } = pageHead(page);
    let at = bodyAt;
    for (const bytes of lacing) {
      head ??= page.subarray(at, at + PRE_SKIP_AT + 2);
      at += bytes;
      if (bytes === 255) continue;
      if (headers === 0) preSkip = head.readUInt16LE(PRE_SKIP_AT);
      if (headers < HEADER_PACKETS) headers += 1;
      else samples += packetSamples(head);
      head = undefined;
    }
    total += samples;
    // −1: no packet ends on the page.
    if (granule >= 0 && samples > 0) {
      cutOff = Math.max(0, endOfPageBefore + samples - granule);
      endOfPageBefore = granule;
    }
  }
  return Math.max(0, total - preSkip - cutOff);
}

/** Whether streams follow each other in the file (RFC 3533 section 4, "chaining"). */
export async function isChained(path: string): Promise<boolean> {
  await using file = await open(path);
  const reader = new ByteReader(file);
  let hasBegun = false;
  try {
    for (let page = await oggPage(reader); page !== undefined; page = await oggPage(reader)) {
      const isFirst = ((page[AT.flags] ?? 0) & FIRST) !== 0;
      if (isFirst && hasBegun) return true;
      hasBegun ||= !isFirst;
    }
  } catch (error) {
    if (!(error instanceof BrokenOgg)) throw error;
  }
  return false;
}

interface OggStream {
  readonly serial: number;
  /** Number of the first page that is written; 0: it begins the stream. */
  readonly sequence: number;
}

export function streamOf(page: Buffer): OggStream {
  return { serial: page.readUInt32LE(AT.serial), sequence: page.readUInt32LE(AT.sequence) };
}

/** Packs packets into pages as ffmpeg does, so that the same packets make the same file. */
export class OggPageWriter {
  readonly #out: ByteWriter;
  readonly #serial: number;
  #sequence: number;
  #lacing: number[] = [];
  #body: Buffer[] = [];
  #flags = 0;
  /** Samples at the end of the last packet that ends on the page; −1: none does. */
  #granule = -1;
  #pageBegan = 0;
  /** Written when more comes: the very last page has a flag. */
  #isFull = false;

  constructor(out: ByteWriter, { serial, sequence }: OggStream) {
    this.#out = out;
    this.#serial = serial;
    this.#sequence = sequence;
    if (sequence === 0) this.#flags = FIRST;
  }

  /** @param granule samples at the end of the packet, pre-skip included */
  async packet(bytes: Buffer, granule: number): Promise<void> {
    let rest = bytes;
    // A packet of a multiple of 255 bytes ends with a lacing value of 0.
    const all = Math.floor(bytes.length / 255) + 1;
    for (let left = all; left > 0; ) {
      if (this.#isFull) await this.#write(0);
      const segments = Math.min(left, MOST_SEGMENTS - this.#lacing.length);
      const length = Math.min(rest.length, segments * 255);
      if (this.#lacing.length === 0 && left < all) this.#flags |= CONTINUED;
      for (let segment = 0; segment < segments; segment += 1) {
        this.#lacing.push(Math.min(255, length - segment * 255));
      }
      this.#body.push(rest.subarray(0, length));
      rest = rest.subarray(length);
      left -= segments;
      if (left === 0) this.#granule = granule;
      const isLong = this.#granule - this.#pageBegan >= PAGE_SAMPLES;
      this.#isFull = this.#lacing.length === MOST_SEGMENTS || isLong;
    }
  }

  /** The next packet begins a new page, as headers do (RFC 7845 section 3). */
  async endPage(): Promise<void> {
    await this.#write(0);
  }

  /** Nothing may be written after it. */
  async end(): Promise<void> {
    await this.#write(LAST);
    await this.#out.flush();
  }

  async #write(flags: number): Promise<void> {
    const header = Buffer.alloc(HEADER_BYTES + this.#lacing.length);
    header.write('OggS', 'latin1');
    header[AT.flags] = this.#flags | flags;
    header.writeBigInt64LE(BigInt(this.#granule), AT.granule);
    header.writeUInt32LE(this.#serial, AT.serial);
    header.writeUInt32LE(this.#sequence, AT.sequence);
    header[AT.segments] = this.#lacing.length;
    header.set(this.#lacing, HEADER_BYTES);
    const page = Buffer.concat([header, ...this.#body]);
    page.writeUInt32LE(crc32(page), AT.crc);
    await this.#out.write(page);
    this.#sequence += 1;
    if (this.#granule >= 0) this.#pageBegan = this.#granule;
    this.#lacing = [];
    this.#body = [];
    this.#flags = 0;
    this.#granule = -1;
    this.#isFull = false;
  }
}

/** Not the CRC-32 of zip: bits are not reflected, starts and ends with 0 (RFC 3533 section 6). */
const CRC32_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit += 1) crc = crc < 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  return crc;
});

function crc32(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) crc = (crc << 8) ^ (CRC32_TABLE[(crc >>> 24) ^ byte] ?? 0);
  return crc >>> 0;
}
