/**
 * Frames of packed audio (RFC 8216 section 3.4), and of the sound in a transport stream: how long
 * they sound.
 */
import { FRAMINGS, type Framing } from '../../frame-headers.ts';

/** Framings that say how long a frame sounds. */
const TIMED = FRAMINGS.filter(({ frameSeconds }) => frameSeconds !== undefined);

/** The longest header that is read of a frame. */
const HEADER_BYTES = 8;

export interface Frame {
  readonly bytes: Buffer;
  readonly seconds: number;
}

/** Finds frames in bytes that come in pieces. Skips all other bytes. */
export class FrameReader {
  #framing: Framing | undefined;
  #rest: Buffer = Buffer.alloc(0);
  #strayBytes = 0;

  /** @param demuxer of the form; default: the form of the first frame */
  constructor(demuxer?: string) {
    this.#framing = TIMED.find((framing) => framing.demuxer === demuxer);
  }

  /** Whether a frame has been seen. */
  get isKnown(): boolean {
    return this.#framing !== undefined;
  }

  /** Whether something between frames was none, or the last one is not whole. */
  get isBroken(): boolean {
    return this.#strayBytes > 0 || this.#rest.length > 0;
  }

  /** @param bytes that follow those before, and begin with a frame if they are the first */
  *read(bytes: Buffer): Generator<Frame> {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#framing ??= TIMED.find((framing) => framing.frameBytes(all, 0) > 0);
    const framing = this.#framing;
    this.#rest = Buffer.alloc(0);
    if (framing === undefined) return;
    let at = 0;
    while (all.length - at >= HEADER_BYTES) {
      const size = framing.frameBytes(all, at);
      if (at + size > all.length) break;
      if (size > 0) {
        yield { bytes: all.subarray(at, at + size), seconds: framing.frameSeconds?.(all, at) ?? 0 };
        at += size;
      } else {
        at += 1;
        this.#strayBytes += 1;
      }
    }
    this.#rest = all.subarray(at);
  }

  /** Something was lost here: the frame that had begun is not whole. */
  forget(): void {
    this.#rest = Buffer.alloc(0);
  }
}
