/** Packed audio (RFC 8216 section 3.4): bare frames, after an ID3 tag with each segment's timestamp. */
import { tagsBytes } from '../segments/examine.ts';
import { copy, type Joiner, type Output, type Part } from './part.ts';
import { type Stretch, wrapFrames } from './wrap-frames.ts';

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
    const begin = await tagsBytes(file);
    this.#writtenBytes += sizeBytes - begin;
    await copy(file, begin, sizeBytes, output);
  }

  async finish(path: string, makeRoom: (bytes: number) => Promise<void>): Promise<number | undefined> {
    if (this.#stretches.length === 1) return undefined;
    return wrapFrames({ path, demuxer: this.#demuxer, stretches: this.#stretches }, makeRoom);
  }
}
