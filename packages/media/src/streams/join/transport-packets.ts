/** Packets of a transport stream (ISO/IEC 13818-1): their timestamps, read and changed in place. */

export const PACKET_BYTES = 188;

/** The 33 bits of a timestamp count 90,000 a second (section 2.4.3.7). */
export const TICKS_PER_SECOND = 90_000;
/** After this many they wrap around. */
const ALL_TICKS = 2 ** 33;

/** From one timestamp to another, seconds, by the shorter way around: below 0 if it is earlier. */
export function secondsBetween(startSeconds: number, endSeconds: number): number {
  const around = ALL_TICKS / TICKS_PER_SECOND;
  const seconds = (endSeconds - startSeconds) % around;
  return Math.abs(seconds) <= around / 2 ? seconds : seconds - Math.sign(seconds) * around;
}

/** The last one may be shorter. */
export function* packetsOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PACKET_BYTES) yield bytes.subarray(at, at + PACKET_BYTES);
}

/** The earliest presentation time in the packets; undefined if none has one. */
export function earliestSeconds(bytes: Buffer): number | undefined {
  let ticks: number | undefined;
  for (const packet of packetsOf(bytes)) {
    const pes = pesOf(packet);
    if (pes !== undefined && stampsOf(pes) >= 2)
      ticks = Math.min(ticks ?? Number.POSITIVE_INFINITY, stampAt(pes, 9));
  }
  return ticks === undefined ? undefined : ticks / TICKS_PER_SECOND;
}

/**
 * In place, PCR (section 2.4.3.4), PTS and DTS (section 2.4.3.6).
 * @param ticks 0 to 2^33
 */
export function addToTimestamps(packet: Buffer, ticks: number): void {
  const [sync, , , control = 0, adaptationBytes = 0] = packet;
  if (sync !== 0x47) return; // ffmpeg looks for the next packet.
  const later = (stamp: number): number => (stamp + ticks) % ALL_TICKS;
  const hasPcr = hasAdaptation(control) && adaptationBytes >= 7 && ((packet[5] ?? 0) & 0x10) !== 0;
  if (hasPcr) {
    // 33 bits, then 9 bits of a finer clock.
    const base = later(packet.readUInt32BE(6) * 2 + ((packet[10] ?? 0) >> 7));
    packet.writeUInt32BE(Math.floor(base / 2), 6);
    packet[10] = ((packet[10] ?? 0) & 0x7f) | ((base % 2) << 7);
  }
  const pes = pesOf(packet);
  if (pes === undefined) return;
  const stamps = stampsOf(pes);
  if (stamps >= 2) writeStamp(pes, 9, later(stampAt(pes, 9)));
  if (stamps === 3) writeStamp(pes, 14, later(stampAt(pes, 14)));
}

/** What a packet says of the stream that it belongs to. */
export interface PacketHead {
  readonly pid: number;
  /** Counts packets with a payload, in four bits; undefined where the packet has none. */
  readonly counter: number | undefined;
  /** Whether counters and clocks may jump here, as it says itself. */
  readonly mayJump: boolean;
  readonly payload: Buffer;
  /** Where a PES packet with a time begins in it. */
  readonly pes?: {
    /** stream_id (table 2-22). */
    readonly id: number;
    readonly seconds: number;
    /** Of its whole payload, bytes; undefined where it does not say. */
    readonly bytes: number | undefined;
    readonly payload: Buffer;
  };
}

/** In place: a null packet (section 2.4.3.3), which nobody reads. */
export function blankPacket(packet: Buffer): void {
  packet.writeUInt16BE(0x1fff, 1);
}

/** @returns undefined where no packet begins, or where it says itself that it is damaged */
export function packetHead(packet: Buffer): PacketHead | undefined {
  const [sync, high = 0, low = 0, control = 0, adaptationBytes = 0, flags = 0] = packet;
  if (sync !== 0x47 || (high & 0x80) !== 0 || packet.length < PACKET_BYTES) return undefined;
  const payload = packet.subarray(hasAdaptation(control) ? 5 + adaptationBytes : 4);
  const pes = pesOf(packet);
  return {
    pid: ((high & 0x1f) << 8) | low,
    counter: (control & 0x10) === 0 ? undefined : control & 0x0f,
    mayJump: hasAdaptation(control) && adaptationBytes > 0 && (flags & 0x80) !== 0,
    payload,
    ...(pes !== undefined && stampsOf(pes) >= 2
      ? {
          pes: {
            id: pes[3] ?? 0,
            seconds: stampAt(pes, 9) / TICKS_PER_SECOND,
            bytes: pes.readUInt16BE(4) === 0 ? undefined : pes.readUInt16BE(4) - 3 - (pes[8] ?? 0),
            payload: pes.subarray(9 + (pes[8] ?? 0)),
          },
        }
      : {}),
  };
}

function hasAdaptation(control: number): boolean {
  return (control & 0x20) !== 0;
}

/** A PES packet from its start code on, if one with the optional header begins in the packet. */
function pesOf(packet: Buffer): Buffer | undefined {
  const [sync, flags = 0, , control = 0, adaptationBytes = 0] = packet;
  const begins = sync === 0x47 && (flags & 0x40) !== 0 && (control & 0x10) !== 0;
  const pes = packet.subarray(hasAdaptation(control) ? 5 + adaptationBytes : 4);
  return begins && pes.length >= 19 && pes.readUIntBE(0, 3) === 1 && (pes[6] ?? 0) >> 6 === 2
    ? pes
    : undefined;
}

/** PTS_DTS_flags: 2 for a PTS, 3 for both. */
function stampsOf(pes: Buffer): number {
  return (pes[7] ?? 0) >> 6;
}

/** 3, 15 and 15 bits with a marker behind each: more than 32 bits. */
function stampAt(pes: Buffer, at: number): number {
  const [high = 0, upper, lower] = [pes[at], pes.readUInt16BE(at + 1), pes.readUInt16BE(at + 3)];
  return ((high >> 1) & 7) * 2 ** 30 + (upper >> 1) * 2 ** 15 + (lower >> 1);
}

function writeStamp(pes: Buffer, at: number, ticks: number): void {
  pes[at] = ((pes[at] ?? 0) & 0xf1) | (Math.floor(ticks / 2 ** 30) << 1);
  pes.writeUInt16BE((Math.floor(ticks / 2 ** 15) % 2 ** 15) * 2 + 1, at + 1);
  pes.writeUInt16BE((ticks % 2 ** 15) * 2 + 1, at + 3);
}
