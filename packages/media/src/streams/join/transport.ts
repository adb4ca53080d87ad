/** MPEG transport streams (ISO/IEC 13818-1): concatenated, they are one stream. */
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';
import {
  addToTimestamps,
  blankPacket,
  earliestSeconds,
  PACKET_BYTES,
  packetsOf,
  secondsBetween,
  TICKS_PER_SECOND,
} from './transport-packets.ts';

const CHANGED_AT_ONCE = 1024 * PACKET_BYTES;

/** Contains at least the first audio and the first picture. */
const BEGINNING_BYTES = 512 * PACKET_BYTES;

/** 33 bits, of which the highest stands for 13 hours. */
const ALL_TICKS = 2 ** 33;
const FAR_TICKS = 2 ** 32;

/**
 * After a discontinuity timestamps may jump a few seconds ahead, which would look like a hole in
 * the audio. So every second stretch is moved by 13 hours. The clock then goes on without a hole,
 * as wherever a transport stream's timestamps jump (decisions A2a). Where segments are missing
 * there, the stretch is moved to where it plays: their hole is one.
 */
export class TransportStreamJoiner implements Joiner {
  #startSeconds = 0;
  #isFirst = true;
  /** Added to timestamps. */
  #movedTicks = 0;
  /** Where the sound so far ends, by the joined file's timestamps. */
  #endSeconds: number | undefined;

  get startSeconds(): number {
    return this.#startSeconds;
  }

  async append({ segment, sound, file, sizeBytes }: Part, output: Output): Promise<void> {
    if (this.#isFirst && segment.mediaZeroSeconds !== undefined) {
      const head = await readAt(file, 0, BEGINNING_BYTES);
      this.#startSeconds = Math.max(0, segment.mediaZeroSeconds + (earliestSeconds(head) ?? 0));
    }
    if (segment.breaksClock && !this.#isFirst) this.#movedTicks = this.#afterBreak(segment, sound);
    this.#isFirst = false;
    const { startSeconds, heldSeconds } = sound;
    if (startSeconds !== undefined && heldSeconds !== undefined)
      this.#endSeconds = startSeconds + heldSeconds + this.#movedTicks / TICKS_PER_SECOND;
    const broken = new Set(sound.broken);
    if (this.#movedTicks === 0 && broken.size === 0) return copy(file, 0, sizeBytes, output);
    for (let at = 0; at < sizeBytes; at += CHANGED_AT_ONCE) {
      const bytes = await readAt(file, at, Math.min(CHANGED_AT_ONCE, sizeBytes - at));
      let packetAt = at;
      for (const packet of packetsOf(bytes)) {
        if (broken.has(packetAt)) blankPacket(packet);
        else addToTimestamps(packet, this.#movedTicks);
        packetAt += PACKET_BYTES;
      }
      await output.write(bytes);
    }
  }

  #afterBreak({ gapSeconds = 0 }: Part['segment'], { startSeconds }: Part['sound']): number {
    if (gapSeconds === 0 || startSeconds === undefined || this.#endSeconds === undefined)
      return (this.#movedTicks + FAR_TICKS) % ALL_TICKS;
    const seconds = secondsBetween(startSeconds, this.#endSeconds + gapSeconds);
    return (Math.round(seconds * TICKS_PER_SECOND) + ALL_TICKS) % ALL_TICKS;
  }
}
