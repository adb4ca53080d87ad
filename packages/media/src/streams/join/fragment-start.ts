/** When a fragment of MP4 begins to be shown, by the first bytes of its file. */
import { boxHeader } from '../../sparse/mp4/boxes.ts';
import { runsOf } from './fragment.ts';
import { readMovie } from './movie.ts';

/** Of a fragment's box, most of which need not be there. */
const MAX_BOX_BYTES = 1024 * 1024;

/**
 * @param init the header of the stream
 * @param head as much of the fragment as holds its times: they stand in front of the list of its samples
 * @returns seconds on the clock of the stream; undefined where they do not say. @throws UnsupportedLayout
 */
export function fragmentStartSeconds(init: Uint8Array, head: Buffer): number | undefined {
  const { tracks } = readMovie(init);
  for (let at = 0; at < head.length; ) {
    const { type, headerBytes, sizeBytes } = boxHeader(head.subarray(at));
    if (sizeBytes === null || sizeBytes > MAX_BOX_BYTES) return undefined;
    if (type === 'moof') {
      // What is missing reads as 0.
      const box = Buffer.alloc(sizeBytes);
      head.copy(box, 0, at, Math.min(head.length, at + sizeBytes));
      const starts = runsOf(box.subarray(headerBytes)).flatMap(({ track, startTicks, offsetTicks }) => {
        const known = tracks.find(({ id }) => id === track);
        if (known === undefined || startTicks === undefined) return [];
        return [(startTicks + offsetTicks) / known.timescale + known.editSeconds];
      });
      return starts.length === 0 ? undefined : Math.min(...starts);
    }
    at += sizeBytes;
  }
  return undefined;
}
