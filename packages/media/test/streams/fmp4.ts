/** A header and a fragment of fMP4, with one track of AAC at 48 kHz. */
import { box, FTYP, mdat, words } from '../sparse/mp4-boxes.ts';

const track = (id: number): Buffer => {
  const stsd = box('stsd', words(0, 1), box('mp4a', Buffer.alloc(28)));
  const hdlr = box('hdlr', words(0, 0), Buffer.from('soun'), Buffer.alloc(13));
  const mdhd = box('mdhd', words(0, 0, 0, 48_000, 0, 0));
  return box(
    'trak',
    box('tkhd', words(1, 0, 0, id), Buffer.alloc(68)),
    box('mdia', mdhd, hdlr, box('minf', box('stbl', stsd))),
  );
};

/** @param trex how many, the first for track 1 */
export const header = (tracks: number, trex = 1, ...others: readonly Buffer[]): Buffer =>
  Buffer.concat([
    FTYP,
    box(
      'moov',
      box('mvhd', words(0, 0, 0, 1000), Buffer.alloc(80)),
      ...Array.from({ length: tracks }, (_, nth) => track(nth + 1)),
      box('mvex', ...Array.from({ length: trex }, (_, nth) => box('trex', words(0, nth + 1, 1, 1024, 0, 0)))),
      ...others,
    ),
  ]);

/** Two frames. */
export const fragment = Buffer.concat([
  box('moof', box('traf', box('tfhd', words(0, 1)), box('tfdt', words(0, 0)), box('trun', words(0, 2)))),
  mdat(8),
]);
