/** Packets of a transport stream (ISO/IEC 13818-1): their timestamps, read and changed in place. */

export const PACKET_BYTES = 188;

/** The 33 bits of a timestamp count 90,000 a second (section 2.4.3.7). */
const TICKS_PER_SECOND = 90_000;

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
      ticks = Math.min(ticks ?? Number.POSITIVE_INFINITY, ptsOf(pes));
  }
  return ticks === undefined ? undefined : ticks / TICKS_PER_SECOND;
}

/** In place: the highest of the 33 bits of PCR (section 2.4.3.4), PTS and DTS (section 2.4.3.6). */
export function flipTimestamps(packet: Buffer): void {
  const [sync, , , control = 0, adaptationBytes = 0] = packet;
  if (sync !== 0x47) return; // ffmpeg looks for the next packet.
  const hasPcr = hasAdaptation(control) && adaptationBytes >= 7 && ((packet[5] ?? 0) & 0x10) !== 0;
  if (hasPcr) flip(packet, 6, 0x80);
  const pes = pesOf(packet);
  if (pes === undefined) return;
  const stamps = stampsOf(pes);
  if (stamps >= 2) flip(pes, 9, 0x08);
  if (stamps === 3) flip(pes, 14, 0x08);
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
function ptsOf(pes: Buffer): number {
  const [high = 0, upper = 0, lower = 0] = [pes[9], pes.readUInt16BE(10), pes.readUInt16BE(12)];
  return ((high >> 1) & 7) * 2 ** 30 + (upper >> 1) * 2 ** 15 + (lower >> 1);
}

function flip(bytes: Buffer, at: number, bit: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ bit;
}
