/** Where a recording is cut into parts that a transcriber takes (pure). */
import { cutBefore, type Levels, pausesIn, type Stretch } from 'soundpost-media/notes/pauses';

/**
 * Parts that follow one another without a gap and without an overlap, so that no word is lost or said twice: cut in the longest pause of the last third of
 * what fits, without a pause in the quietest 20 ms.
 * @param levels of the whole, a window for each 20 ms
 * @param most windows of a part, 1 or more
 */
export function partsOf(levels: Levels, most: number): Stretch[] {
  const parts: Stretch[] = [];
  let from = 0;
  if (levels.length > most) {
    const pauses = pausesIn(levels);
    while (levels.length - from > most) {
      // One window at least, or it would never end.
      const to = Math.max(from + 1, cutBefore(levels, pauses, from, from + most));
      parts.push({ from, to });
      from = to;
    }
  }
  if (from < levels.length) parts.push({ from, to: levels.length });
  return parts;
}
