/** Joins the parts of an encode into one file. */
import { type FileHandle, open } from 'node:fs/promises';
import { ByteReader, ByteWriter } from '../byte-file.ts';
import {
  BrokenOgg,
  HEADER_PACKETS,
  OggPageWriter,
  oggPackets,
  oggPage,
  PRE_SKIP_AT,
  pageHead,
  streamOf,
} from '../ogg/pages.ts';
import { frameShape, InfoTally, infoAt, mp3Frames, soundOfFrames } from './mp3-frames.ts';
import { findSplice, type Part, type splicingOf, Unjoinable } from './parts.ts';

export interface EncodedPart extends Part {
  readonly path: string;
}

interface Joining {
  /** In order; the first has all headers, the others only packets. */
  readonly parts: readonly EncodedPart[];
  readonly outputPath: string;
  readonly splicing: NonNullable<ReturnType<typeof splicingOf>>;
  /** All encoded samples of one channel. */
  readonly samples: number;
  readonly signal: AbortSignal;
}

/** What the audio packets of the joined file are. */
interface Joined {
  readonly packets: number;
  readonly bytes: number;
}

/** @throws {Unjoinable} when two neighbours never make the same packets */
export async function joinMp3(joining: Joining): Promise<Joined> {
  return withFiles(joining, async (files, output) => {
    const out = new ByteWriter(output);
    const [first, ...others] = files.map((file) => new ByteReader(file));
    if (first === undefined) throw new Unjoinable('no parts');
    const infoFrame = await copyUpToSound(first, out);
    const tally = new InfoTally(infoFrame.frame.length);
    for await (const frame of splice(joining, [first, ...others].map(mp3Frames), soundOfFrames)) {
      tally.add(frame);
      await out.write(frame);
    }
    await out.flush();
    const table = tally.write(infoFrame.frame, joining.splicing.frameSamples, joining.samples);
    await output.write(table, 0, table.length, infoFrame.at);
    return { packets: tally.frames, bytes: tally.bytes };
  });
}

/** Tags and the Info frame, which is rewritten when all is known. */
async function copyUpToSound(reader: ByteReader, out: ByteWriter): Promise<{ frame: Buffer; at: number }> {
  let at = 0;
  const tag = await reader.peek(10);
  if (tag.toString('latin1', 0, 3) === 'ID3') {
    // ID3v2.3 section 3.1: the size without these ten bytes, seven bits in each of four.
    at = 10 + tag.subarray(6).reduce((size, byte) => size * 128 + byte, 0);
    for (let left = at; left > 0; ) {
      const piece = await reader.peek(Math.min(left, 65_536));
      if (piece.length === 0) throw new Unjoinable('an ID3 tag is cut off');
      reader.skip(piece.length);
      await out.write(piece);
      left -= piece.length;
    }
  }
  const frame = await reader.peek(frameShape(await reader.peek(4)).bytes);
  infoAt(frame);
  reader.skip(frame.length);
  await out.write(frame);
  return { frame, at };
}

/** @throws {Unjoinable} when two neighbours never make the same packets */
export async function joinOpus(joining: Joining): Promise<Joined> {
  return withFiles(joining, async (files, output) => {
    const out = new ByteWriter(output);
    const [first, ...others] = files.map((file) => new ByteReader(file));
    if (first === undefined) throw new Unjoinable('no parts');
    const { preSkip, serial, sequence } = await passOpusHeaders(first, out);
    for (const other of others) await passOpusHeaders(other);
    const pages = new OggPageWriter(out, { serial, sequence });
    const end = preSkip + joining.samples;
    let packets = 0;
    let bytes = 0;
    for await (const packet of splice(joining, [first, ...others].map(oggPackets), (whole) => whole)) {
      packets += 1;
      bytes += packet.length;
      // Silence fills the last packet; the granule position cuts it (RFC 7845 section 4.4).
      await pages.packet(packet, Math.min(end, packets * joining.splicing.frameSamples));
    }
    if (packets !== Math.ceil(end / joining.splicing.frameSamples)) {
      throw new Unjoinable('the packets are not as many as the samples ask for');
    }
    await pages.end();
    return { packets, bytes };
  }).catch((error: unknown) => {
    throw error instanceof BrokenOgg ? new Unjoinable(error.message) : error;
  });
}

/**
 * Reads past them, and writes them if wanted. They end with their pages: audio begins on a new one.
 */
async function passOpusHeaders(reader: ByteReader, out?: ByteWriter) {
  let preSkip = 0;
  let stream = { serial: 0, sequence: 0 };
  for (let packet = 0; packet < HEADER_PACKETS; ) {
    const page = await oggPage(reader);
    if (page === undefined) throw new Unjoinable('an Opus file without its headers');
    if (packet === 0) preSkip = page.readUInt16LE(page.indexOf('OpusHead') + PRE_SKIP_AT);
    packet += pageHead(page).lacing.filter((bytes) => bytes < 255).length;
    stream = streamOf(page);
    await out?.write(page);
  }
  return { preSkip, serial: stream.serial, sequence: stream.sequence + 1 };
}

/** The packets of all parts, each part's up to where the next one's continue. */
async function* splice(
  { parts, splicing, signal }: Joining,
  streams: readonly AsyncGenerator<Buffer>[],
  soundOf: (packets: readonly Buffer[]) => readonly (Buffer | null)[],
): AsyncGenerator<Buffer> {
  let taken: Buffer[] = [];
  let at = 0;
  for (const [index, stream] of streams.entries()) {
    signal.throwIfAborted();
    const next = parts[index + 1];
    yield* taken;
    at += taken.length;
    if (next === undefined) {
      yield* stream;
      return;
    }
    const nextBegins = next.startSample / splicing.frameSamples;
    if (at > nextBegins) throw new Unjoinable('three parts overlap at one place');
    const overlap: Buffer[] = [];
    for await (const packet of stream) {
      if (at < nextBegins) yield packet;
      else overlap.push(packet);
      at += 1;
    }
    const other = await take(streams[index + 1], overlap.length);
    const place = findSplice(soundOf(overlap), soundOf(other), splicing.rule);
    if (place === undefined) throw new Unjoinable('two parts never make the same packets');
    yield* overlap.slice(0, place);
    taken = other.slice(place);
    at = nextBegins + place;
  }
}

async function take(stream: AsyncGenerator<Buffer> | undefined, count: number): Promise<Buffer[]> {
  const packets: Buffer[] = [];
  while (stream !== undefined && packets.length < count) {
    const { value, done } = await stream.next();
    if (done) break;
    packets.push(value);
  }
  return packets;
}

async function withFiles<T>(
  { parts, outputPath }: Joining,
  use: (files: readonly FileHandle[], output: FileHandle) => Promise<T>,
): Promise<T> {
  const opened: FileHandle[] = [];
  try {
    for (const { path } of parts) opened.push(await open(path, 'r'));
    const output = await open(outputPath, 'w');
    opened.push(output);
    return await use(opened.slice(0, -1), output);
  } finally {
    await Promise.all(opened.map((file) => file.close()));
  }
}
