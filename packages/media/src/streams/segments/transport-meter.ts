/**
 * How much sound a segment of a transport stream (ISO/IEC 13818-1) holds, and whether it is whole.
 */
import { PACKET_BYTES, packetHead, packetsOf, secondsBetween } from '../join/transport-packets.ts';
import { FrameReader } from './frames.ts';
import type { Sound, Span } from './sound.ts';

/** PES packets of MPEG audio and AAC, and private packets with Dolby's codecs (table 2-22). */
const isSound = (id: number): boolean => (id >= 0xc0 && id <= 0xdf) || id === 0xbd || id === 0xfd;

/** Where a stream's timestamps jump by more, there is another clock. */
const JUMP_SECONDS = 60;

interface Stream {
  readonly isSound: boolean;
  readonly frames: FrameReader;
  /** Of the first timestamp; the others count from it. */
  readonly startSeconds: number;
  /** From the first on, in the order of decoding. */
  readonly stamps: number[];
  counter: number | undefined;
  heldSeconds: number;
  /** The PES packet that is being read. */
  pes: Pes;
}

interface Pes {
  /** Where its packets are in the file. */
  readonly packets: number[];
  /** Of its payload, still to come; undefined where it does not say. */
  leftBytes: number | undefined;
  /** Its frames. */
  seconds: number;
  isBroken: boolean;
}

/** Is given the packets of a segment in order. */
export class TransportMeter {
  readonly #streams = new Map<number, Stream>();
  /** Packets of frames that began before the segment, by their stream. */
  readonly #loose = new Map<number, number[]>();
  readonly #broken: number[] = [];
  #isDamaged = false;
  #at = 0;

  /** @param bytes of whole packets */
  read(bytes: Buffer): void {
    for (const packet of packetsOf(bytes)) {
      this.#packet(packet);
      this.#at += PACKET_BYTES;
    }
  }

  /** @param sizeBytes of the segment's file */
  sound(sizeBytes: number): Sound {
    for (const stream of this.#streams.values()) this.#end(stream);
    const spans = [...this.#streams.values()].map(spanOf);
    const sounding = spans.filter((span) => span.isSound && span.heldSeconds > 0);
    const most = sounding.reduce<(typeof spans)[number] | undefined>(
      (best, span) => (best === undefined || span.heldSeconds > best.heldSeconds ? span : best),
      undefined,
    );
    const others = spans.filter((span) => !span.isSound && !span.hasHole);
    return {
      kind: 'mpegts',
      bytes: sizeBytes - (sizeBytes % PACKET_BYTES),
      heldSeconds: most?.heldSeconds ?? (spans.length > sounding.length ? undefined : 0),
      startSeconds: most?.startSeconds,
      isWhole: !this.#isDamaged && sizeBytes % PACKET_BYTES === 0,
      beside: others,
      broken: this.#broken,
    };
  }

  #packet(packet: Buffer): void {
    const head = packetHead(packet);
    if (head === undefined) {
      this.#isDamaged = true;
      return;
    }
    const { pid, counter, mayJump, payload, pes } = head;
    const known = this.#streams.get(pid);
    if (counter === undefined || counter === known?.counter) return;
    if (known?.counter !== undefined && !mayJump && counter !== (known.counter + 1) % 16) {
      this.#isDamaged = true;
      known.pes.isBroken = true;
    }
    const stream = known ?? (pes && this.#begin(pid, pes));
    if (stream === undefined) {
      this.#loose.set(pid, [...(this.#loose.get(pid) ?? []).slice(-MAX_LOOSE), this.#at]);
      return;
    }
    stream.counter = counter;
    if (pes !== undefined) {
      stamp(stream, pes.seconds);
      this.#end(stream);
      stream.pes = { packets: [], leftBytes: pes.bytes, seconds: 0, isBroken: false };
    }
    if (stream.isSound) take(stream, pes?.payload ?? payload, this.#at);
  }

  #begin(pid: number, { id, seconds }: { readonly id: number; readonly seconds: number }): Stream {
    const stream = {
      ...{ isSound: isSound(id), frames: new FrameReader(), startSeconds: seconds },
      ...{ stamps: [], counter: undefined, heldSeconds: 0 },
      pes: { packets: [], leftBytes: undefined, seconds: 0, isBroken: false },
    };
    if (stream.isSound) this.#broken.push(...(this.#loose.get(pid) ?? []));
    this.#streams.set(pid, stream);
    return stream;
  }

  /** An incomplete frame would spoil the next ones: decoders look for its rest. */
  #end(stream: Stream): void {
    const { pes, frames, isSound: sounds } = stream;
    if (!sounds) return;
    if (pes.isBroken || (pes.leftBytes ?? 0) > 0) {
      this.#isDamaged = true;
      for (const at of pes.packets) this.#broken.push(at);
      frames.forget();
    } else {
      stream.heldSeconds += pes.seconds;
    }
    pes.packets.length = 0;
    pes.seconds = 0;
  }
}

/** Packets of a PES packet that began before the segment: 64 KiB. */
const MAX_LOOSE = 400;

function take({ pes, frames }: Stream, payload: Buffer, at: number): void {
  pes.packets.push(at);
  if (pes.leftBytes !== undefined) pes.leftBytes -= payload.length;
  for (const { seconds } of frames.read(payload)) pes.seconds += seconds;
}

function stamp({ startSeconds, stamps }: Stream, seconds: number): void {
  const at = secondsBetween(startSeconds, seconds);
  if (Math.abs(at - (stamps.at(-1) ?? 0)) <= JUMP_SECONDS && stamps.length < MAX_STAMPS) stamps.push(at);
}

/** Packets with times that a segment has at most; of more, the rest is not looked at. */
const MAX_STAMPS = 100_000;

/**
 * Between two pictures, where some are missing between them: so long, and so many times the usual.
 */
const HOLE = { seconds: 0.3, times: 3 };

interface StreamSpan extends Span {
  readonly isSound: boolean;
  readonly hasHole: boolean;
}

/** Where no frame was found, by its timestamps, of which the last lasts as long as the others. */
function spanOf({ stamps, frames, startSeconds, isSound: sounds, heldSeconds }: Stream): StreamSpan {
  const sorted = stamps.toSorted((a, b) => a - b);
  const [earliest = 0] = sorted;
  const usual = sorted.length < 2 ? 0 : ((sorted.at(-1) ?? 0) - earliest) / (sorted.length - 1);
  const longest = sorted.reduce((most, at, nth) => Math.max(most, at - (sorted[nth - 1] ?? at)), 0);
  return {
    isSound: sounds,
    hasHole: longest > Math.max(HOLE.seconds, HOLE.times * usual),
    startSeconds: startSeconds + earliest,
    heldSeconds: frames.isKnown ? heldSeconds : usual * sorted.length,
  };
}
