/** MPEG transport streams (ISO/IEC 13818-1): one behind another they are one. */
import { unusable } from '../presentation.ts';
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';
import { earliestSeconds, flipTimestamps, PACKET_BYTES, packetsOf } from './transport-packets.ts';

const CHUNK_BYTES = 1024 * PACKET_BYTES;

/** Where the first sound and the first picture are, at least. */
const BEGINNING_BYTES = 512 * PACKET_BYTES;

/**
 * Behind a discontinuity timestamps may go on anywhere, also a few seconds ahead, which would be taken for a hole in the sound. So that none of these
 * jumps is that short, each second stretch has the highest bit of its timestamps the other way round: 13 hours away. The clock then goes on without
 * a hole, as it does wherever the timestamps of a transport stream jump (decisions A2a).
 */
export class TransportStreamJoiner implements Joiner {
  #startSeconds = 0;
  #isFirst = true;
  #isFlipped = false;

  get startSeconds(): number {
    return this.#startSeconds;
  }

  async append({ segment, file, sizeBytes }: Part, output: Output): Promise<void> {
    const head = await readAt(file, 0, this.#isFirst ? BEGINNING_BYTES : PACKET_BYTES + 1);
    if (head[0] !== 0x47 || (head[PACKET_BYTES] ?? 0x47) !== 0x47)
      throw unusable('a segment is no MPEG transport stream, unlike the first');
    if (this.#isFirst && segment.mediaZeroSeconds !== undefined)
      this.#startSeconds = Math.max(0, segment.mediaZeroSeconds + (earliestSeconds(head) ?? 0));
    if (segment.breaksClock && !this.#isFirst) this.#isFlipped = !this.#isFlipped;
    this.#isFirst = false;
    if (!this.#isFlipped) return copy(file, 0, sizeBytes, output);
    for (let at = 0; at < sizeBytes; at += CHUNK_BYTES) {
      const bytes = await readAt(file, at, CHUNK_BYTES);
      for (const packet of packetsOf(bytes)) flipTimestamps(packet);
      await output.write(bytes);
    }
  }
}
