/**
 * The form of phones' own voice notes. It is the only form that all phones are reported to play
 * (decisions A3): Ogg Opus, mono, 16 kHz, SILK wideband frames of 20 ms, three to a packet. Frames
 * stay unchanged, so decoders output the same samples (docs/decisions/0034-voice-notes.md).
 */
import { open } from 'node:fs/promises';
import { ByteReader, ByteWriter } from '../byte-file.ts';
import { framesOf, packetOf, packetSamples } from './opus-frames.ts';
import { BrokenOgg, isIntact, OggPageWriter, oggPage, pageHead, streamOf } from './pages.ts';

/** Configuration 9 of RFC 6716 section 3.1, table 2: SILK, wideband, 20 ms; mono. */
const NATIVE_KIND = 9 << 3;
const FRAMES_A_PACKET = 3;
const INPUT_RATE = 16_000;

interface VoiceForm {
  /** Whether all of it has the form, once its frames are packed three to a packet. */
  readonly isNative: boolean;
  /** Whether it has the form already, so that nothing needs repacking. */
  readonly isUntouched: boolean;
  /** Of the target. */
  readonly packets: number;
  /** Of the target's packets. */
  readonly bytes: number;
}

interface PackOptions {
  /** Its length at 48 kHz, if its writer knows; default: by its last granule position. */
  readonly samples?: number | undefined;
  /** Longest source that is read, samples at 48 kHz; default any. */
  readonly maxSamples?: number;
  readonly signal?: AbortSignal;
}

/**
 * Packs the frames of an Ogg Opus file three to a packet. If it has frames of another kind, the
 * target is only its beginning, unless `samples` are known.
 * @throws {BrokenOgg} unless the source is one intact, complete stream, or if it is too long; the
 * signal's reason
 */
export async function packVoiceNote(
  source: string,
  target: string,
  options: PackOptions = {},
): Promise<VoiceForm> {
  await using from = await open(source, 'r');
  const stream = await openStream(new ByteReader(from), options);
  await using to = await open(target, 'w');
  return await pack(stream, new ByteWriter(to), options);
}

async function pack(
  { head, tags, serial, packets }: OpusStream,
  writer: ByteWriter,
  { samples: known }: PackOptions,
): Promise<VoiceForm> {
  const out = new OggPageWriter(writer, { serial: serial || 1, sequence: 0 });
  await out.packet(headOf(head.preSkip), 0);
  await out.endPage();
  await out.packet(TAGS, 0);
  await out.endPage();

  const form = {
    isNative: head.isPlainMono,
    isUntouched:
      head.inputRate === INPUT_RATE && !tags.toString('latin1').toLowerCase().includes(ENCODER_TAG),
    packets: 0,
    bytes: 0,
  };
  const held: { kind: number; frames: Buffer[]; granule: number } = {
    kind: NATIVE_KIND,
    frames: [],
    granule: 0,
  };
  const write = async (): Promise<void> => {
    if (held.frames.length === 0) return;
    const packet = packetOf(held);
    form.packets += 1;
    form.bytes += packet.length;
    held.frames = [];
    await out.packet(packet, held.granule);
  };
  let isFull = true;
  for await (const { packet, began, ends, isOnTime } of packets) {
    const { kind, frames } = takenApart(packet);
    form.isNative &&= kind === NATIVE_KIND;
    // It will be encoded, so the rest of a stranger's file need not be read.
    if (!form.isNative && known === undefined) break;
    // Only the last packet may be shorter.
    form.isUntouched &&= isOnTime && isFull && frames.length <= FRAMES_A_PACKET;
    isFull = (packet.readUInt8(0) & 3) === 3 && frames.length === FRAMES_A_PACKET;
    if (kind !== held.kind) await write();
    const samples = packetSamples(packet) / frames.length;
    for (const [nth, frame] of frames.entries()) {
      held.kind = kind;
      held.frames.push(frame);
      held.granule = Math.min(began + (nth + 1) * samples, ends);
      if (held.frames.length === FRAMES_A_PACKET) await write();
    }
  }
  await write();
  await out.end();
  return { ...form, isUntouched: form.isUntouched && form.isNative };
}

function takenApart(packet: Buffer): NonNullable<ReturnType<typeof framesOf>> {
  const taken = framesOf(packet);
  if (taken === null) throw new BrokenOgg('a packet is not of Opus');
  return taken;
}

/** Each packet's bytes in an Ogg Opus file, and its end: samples at 48 kHz with the pre-skip. */
export async function* packetsOf(path: string): AsyncGenerator<{ bytes: number; endSamples: number }> {
  await using file = await open(path, 'r');
  const { packets } = await openStream(new ByteReader(file));
  for await (const { packet, ends } of packets) {
    yield { bytes: packet.length + Math.floor(packet.length / 255) + 1, endSamples: ends };
  }
}

interface OpusStream {
  readonly head: OpusHead;
  readonly tags: Buffer;
  readonly serial: number;
  readonly packets: AsyncGenerator<OpusPacket>;
}

interface OpusPacket {
  readonly packet: Buffer;
  /** Granule position before it: samples at 48 kHz. */
  readonly began: number;
  /** Granule position after its audible part: the last page may cut it (RFC 7845 section 4.4). */
  readonly ends: number;
  /** Whether its page reports the same end. */
  readonly isOnTime: boolean;
}

async function openStream(reader: ByteReader, options: PackOptions = {}): Promise<OpusStream> {
  const all = packetsOnPages(reader, options.signal);
  const { value: head } = await all.next();
  const { value: tags } = await all.next();
  if (head === undefined || tags === undefined) throw new BrokenOgg('an Opus file without its headers');
  const read = readHead(head.packet);
  const packets = counted(all, read.preSkip, options);
  return { head: read, tags: tags.packet, serial: head.serial, packets };
}

/** How far off writers are that keep times in milliseconds or in samples of 16 kHz. */
const TOLERATED_SAMPLES = 48;

/** @throws {BrokenOgg} where granule positions have gaps, or the last is outside the last packet */
async function* counted(
  packets: AsyncGenerator<PacketOnPage>,
  preSkip: number,
  { samples, maxSamples = Number.POSITIVE_INFINITY }: PackOptions,
): AsyncGenerator<OpusPacket> {
  let before: (OpusPacket & { readonly granule: number }) | undefined;
  for await (const { packet, granule, isLastOnPage } of packets) {
    if (before !== undefined) {
      if (samples === undefined && Math.abs(before.granule - before.ends) > TOLERATED_SAMPLES) {
        throw new BrokenOgg('the granule positions have gaps');
      }
      yield { ...before, isOnTime: before.granule === before.ends };
    }
    const began = before?.ends ?? 0;
    const ends = began + packetSamples(packet);
    if (ends - preSkip > maxSamples) throw new BrokenOgg('it is too long');
    before = { packet, began, ends, granule: isLastOnPage ? granule : ends, isOnTime: true };
  }
  if (before === undefined) return;
  const { granule, began, ends } = before;
  if (samples === undefined && (granule < began || granule > ends + TOLERATED_SAMPLES)) {
    throw new BrokenOgg('the last granule position does not match the last packet');
  }
  const last = samples === undefined ? granule : preSkip + samples;
  yield { ...before, ends: Math.min(ends, last), isOnTime: granule <= ends };
}

interface PacketOnPage {
  readonly packet: Buffer;
  readonly serial: number;
  /** Of the page on which it ends. */
  readonly granule: number;
  readonly isLastOnPage: boolean;
}

/** Demultiplexers should reject larger packets (RFC 7845 section 6). Headers are far smaller. */
const LARGEST_PACKET = 61_440;

async function* packetsOnPages(
  reader: ByteReader,
  signal: AbortSignal | undefined,
): AsyncGenerator<PacketOnPage> {
  let begun: Buffer[] = [];
  let begunBytes = 0;
  let serial: number | undefined;
  for (let page = await oggPage(reader); page !== undefined; page = await oggPage(reader)) {
    signal?.throwIfAborted();
    if (!isIntact(page)) throw new BrokenOgg('a page is damaged');
    const stream = streamOf(page);
    serial ??= stream.serial;
    if (stream.serial !== serial) throw new BrokenOgg('more than one stream');
    const { granule, lacing, bodyAt } = pageHead(page);
    const lastEnd = lacing.findLastIndex((bytes) => bytes < 255);
    let at = bodyAt;
    for (const [nth, bytes] of lacing.entries()) {
      begun.push(page.subarray(at, at + bytes));
      at += bytes;
      begunBytes += bytes;
      if (begunBytes > LARGEST_PACKET) throw new BrokenOgg('a packet is too large');
      if (bytes === 255) continue;
      yield { packet: Buffer.concat(begun), serial, granule, isLastOnPage: nth === lastEnd };
      begun = [];
      begunBytes = 0;
    }
  }
  if (begun.length > 0) throw new BrokenOgg('the last packet is cut off');
}

interface OpusHead {
  /** Samples at 48 kHz that a decoder throws away at the beginning. */
  readonly preSkip: number;
  readonly inputRate: number;
  /** One channel, no gain, mapping family 0. */
  readonly isPlainMono: boolean;
}

const HEAD_BYTES = 19;
const HEAD_AT = { version: 8, channels: 9, preSkip: 10, inputRate: 12, gain: 16, family: 18 };

/** RFC 7845 section 5.1. */
function readHead(packet: Buffer): OpusHead {
  if (packet.length < HEAD_BYTES || packet.toString('latin1', 0, 8) !== 'OpusHead') {
    throw new BrokenOgg('no Opus');
  }
  const channels = packet[HEAD_AT.channels];
  return {
    preSkip: packet.readUInt16LE(HEAD_AT.preSkip),
    inputRate: packet.readUInt32LE(HEAD_AT.inputRate),
    isPlainMono: channels === 1 && packet.readInt16LE(HEAD_AT.gain) === 0 && packet[HEAD_AT.family] === 0,
  };
}

function headOf(preSkip: number): Buffer {
  const packet = Buffer.alloc(HEAD_BYTES);
  packet.write('OpusHead', 'latin1');
  packet[HEAD_AT.version] = 1;
  packet[HEAD_AT.channels] = 1;
  packet.writeUInt16LE(preSkip, HEAD_AT.preSkip);
  packet.writeUInt32LE(INPUT_RATE, HEAD_AT.inputRate);
  return packet;
}

/** No vendor and no tags (RFC 7845 section 5.2). */
const TAGS = Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(8)]);

const ENCODER_TAG = 'encoder=';
