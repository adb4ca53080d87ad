/** MPEG transport streams (ISO/IEC 13818-1): one behind another they are one. */
import { unusable } from '../presentation.ts';
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';

const PACKET_BYTES = 188;
const CHUNK_BYTES = 1024 * PACKET_BYTES;

/**
 * Behind a discontinuity timestamps may go on anywhere, also a few seconds ahead, which would be taken for a hole in the sound. So that none of these
 * jumps is that short, each second stretch has the highest bit of its timestamps the other way round: 13 hours away. The clock then goes on without
 * a hole, as it does wherever the timestamps of a transport stream jump (decisions A2a).
 */
export class TransportStreamJoiner implements Joiner {
  readonly startSeconds = 0;
  #isFirst = true;
  #isFlipped = false;

  async append({ segment, file, sizeBytes }: Part, output: Output): Promise<void> {
    const head = await readAt(file, 0, PACKET_BYTES + 1);
    if (head[0] !== 0x47 || (head[PACKET_BYTES] ?? 0x47) !== 0x47)
      throw unusable('a segment is no MPEG transport stream, unlike the first');
    if (segment.breaksClock && !this.#isFirst) this.#isFlipped = !this.#isFlipped;
    this.#isFirst = false;
    if (!this.#isFlipped) return copy(file, 0, sizeBytes, output);
    for (let at = 0; at < sizeBytes; at += CHUNK_BYTES) {
      const bytes = await readAt(file, at, CHUNK_BYTES);
      for (let packet = 0; packet < bytes.length; packet += PACKET_BYTES) {
        flipTimestamps(bytes.subarray(packet, packet + PACKET_BYTES));
      }
      await output.write(bytes);
    }
  }
}

/** In place: the highest of the 33 bits of PCR (section 2.4.3.4), PTS and DTS (section 2.4.3.6). */
function flipTimestamps(packet: Buffer): void {
  const [sync, flags = 0, , control = 0, adaptationBytes = 0] = packet;
  if (sync !== 0x47) return; // ffmpeg looks for the next packet.
  const hasAdaptation = (control & 0x20) !== 0;
  const hasPcr = hasAdaptation && adaptationBytes >= 7 && ((packet[5] ?? 0) & 0x10) !== 0;
  if (hasPcr) flip(packet, 6, 0x80);
  const begins = (flags & 0x40) !== 0 && (control & 0x10) !== 0;
  const pes = packet.subarray(hasAdaptation ? 5 + adaptationBytes : 4);
  if (!begins || pes.length < 19 || pes.readUIntBE(0, 3) !== 1 || (pes[6] ?? 0) >> 6 !== 2) return;
  const stamps = (pes[7] ?? 0) >> 6;
  if (stamps >= 2) flip(pes, 9, 0x08);
  if (stamps === 3) flip(pes, 14, 0x08);
}

function flip(bytes: Buffer, at: number, bit: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ bit;
}
