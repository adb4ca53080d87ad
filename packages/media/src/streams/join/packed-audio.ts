/**
 * Packed audio (RFC 8216 section 3.4): bare frames, after an ID3 tag with each segment's timestamp.
 */
import { tagsBytes } from '../segments/examine.ts';
import { FrameReader } from '../segments/frames.ts';
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';
import { type Stretch, wrapFrames } from './wrap-frames.ts';

const WINDOW_BYTES = 256 * 1024;

/**
 * Drops the tags, which may pass for frames in the middle. Frames have no timestamps that jump; so
 * where segments are missing, a transport stream around them says when each plays.
 */
export class PackedAudioJoiner implements Joiner {
  readonly startSeconds = 0;
  readonly #stretches: [Stretch, ...Stretch[]] = [{ at: 0, startSeconds: 0 }];
  #demuxer = '';
  #writtenBytes = 0;
  #endSeconds = 0;
  /** What the segments so far lack at their ends. */
  #lackSeconds = 0;

  async append({ segment, sound, missingSeconds, file, sizeBytes }: Part, output: Output): Promise<void> {
    this.#demuxer = sound.kind;
    const gapSeconds = this.#lackSeconds + (segment.gapSeconds ?? 0);
    // A gap in front of all is a late beginning.
    if (gapSeconds > 0 && this.#writtenBytes > 0) {
      this.#endSeconds += gapSeconds;
      this.#stretches.push({ at: this.#writtenBytes, startSeconds: this.#endSeconds });
    }
    this.#lackSeconds = missingSeconds;
    this.#endSeconds += sound.heldSeconds ?? segment.seconds;
    const counted = {
      write: async (bytes: Uint8Array) => {
        this.#writtenBytes += bytes.length;
        await output.write(bytes);
      },
    };
    const begin = await tagsBytes(file);
    if (sound.isWhole) return copy(file, begin, sizeBytes, counted);
    // Behind half a frame decoders find no other for a while.
    const frames = new FrameReader(sound.kind);
    for (let at = begin; at < sizeBytes; at += WINDOW_BYTES) {
      const window = await readAt(file, at, Math.min(WINDOW_BYTES, sizeBytes - at));
      await counted.write(Buffer.concat(Array.from(frames.read(window), ({ bytes }) => bytes)));
    }
  }

  async finish(path: string, makeRoom: (bytes: number) => Promise<void>): Promise<number | undefined> {
    if (this.#stretches.length === 1) return undefined;
    return wrapFrames({ path, demuxer: this.#demuxer, stretches: this.#stretches }, makeRoom);
  }
}
