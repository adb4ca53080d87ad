/** Packed audio (RFC 8216 section 3.4): bare frames, with an ID3 tag in front of each segment that holds its timestamp. */
import { SNIFF_BYTES, sniffContainer } from '../../sniff.ts';
import { unusable } from '../presentation.ts';
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';

/** One is usual. A segment of gigabytes may consist of those of ten bytes, each read for itself. */
const MAX_TAGS = 100;

/** The tags are left out: bytes of one in the middle of a file may pass for a frame. Frames have no timestamps that could jump. */
export class PackedAudioJoiner implements Joiner {
  readonly startSeconds = 0;
  #demuxer: string | undefined;

  async append({ file, sizeBytes }: Part, output: Output): Promise<void> {
    let at = 0;
    let tags = 0;
    for (let tag = await tagBytes(file, at); tag > 0; tag = await tagBytes(file, at)) {
      at += tag;
      tags += 1;
      if (tags > MAX_TAGS) throw unusable(`a segment begins with more than ${MAX_TAGS} tags`);
    }
    const demuxer = sniffContainer(await readAt(file, at, SNIFF_BYTES))?.demuxer;
    this.#demuxer ??= demuxer;
    if (at >= sizeBytes) return;
    if (demuxer !== this.#demuxer) throw unusable('a segment holds other audio than the first');
    await copy(file, at, sizeBytes, output);
  }
}

/** ID3v2.4 section 3.1; 0 where no tag stands. */
async function tagBytes(file: Part['file'], at: number): Promise<number> {
  const head = await readAt(file, at, 10);
  if (head.length < 10 || head.toString('latin1', 0, 3) !== 'ID3') return 0;
  const footerBytes = ((head[5] ?? 0) & 0x10) === 0 ? 0 : 10;
  return 10 + footerBytes + head.subarray(6).reduce((size, byte) => size * 128 + (byte & 0x7f), 0);
}
