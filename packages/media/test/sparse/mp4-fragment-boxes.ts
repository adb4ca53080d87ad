/** Fragmented MP4 files made of boxes by hand (ISO/IEC 14496-12 section 8.8), as a test wants them. */
import { box, FTYP, longs, stco, stsc, stsz, type TrackBoxes, trak, words } from './mp4-boxes.ts';

/** What a track with all of its samples in fragments has. */
export const NO_SAMPLES = [box('stts', words(0, 0)), stsc(), stsz(), stco()];

export const AUDIO: TrackBoxes = { handler: 'soun', format: 'mp4a', id: 1, tables: NO_SAMPLES };
export const PICTURES: TrackBoxes = { handler: 'vide', format: 'avc1', id: 2, tables: NO_SAMPLES };

/** @param size of samples where fragments say nothing */
export const trex = (track: number, size = 0) => box('trex', words(0, track, 1, 1024, size, 0));

/** @param extends_ the boxes that announce fragments */
export function announced(
  tracks: readonly TrackBoxes[] = [AUDIO, PICTURES],
  extends_: readonly Buffer[] = [trex(1), trex(2)],
): Buffer {
  return Buffer.concat([FTYP, box('moov', ...tracks.map(trak), box('mvex', ...extends_))]);
}

/** A track fragment header whose offsets are counted from its fragment, or from what flags and fields say. */
export const tfhd = (track: number, flags = 0x20000, ...fields: readonly Buffer[]) =>
  box('tfhd', words(flags, track), ...fields);

/** A run whose samples lie `offset` after what its header says; of `sizes`. */
export const trun = (offset: number, ...sizes: readonly number[]) =>
  box('trun', words(0x201, sizes.length), signed(offset), words(...sizes));

export function signed(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export const traf = (header: Buffer, ...boxes: readonly Buffer[]) => box('traf', header, ...boxes);

/** A fragment and its media data: pictures of `pictureBytes`, and behind them the sound. */
export function fragment(pictureBytes: number, soundSizes: readonly number[]): Buffer {
  const moof = (first: number): Buffer =>
    box(
      'moof',
      box('mfhd', words(0, 1)),
      traf(tfhd(2), trun(first, pictureBytes)),
      traf(tfhd(1), trun(first + pictureBytes, ...soundSizes)),
    );
  const soundBytes = soundSizes.reduce((sum, size) => sum + size, 0);
  return Buffer.concat([
    moof(moof(0).length + 8),
    box('mdat', Buffer.alloc(pictureBytes), Buffer.alloc(soundBytes, 0xaa)),
  ]);
}

/** @param references length of each stretch, and whether it begins with an index of its own */
export function sidx(
  references: readonly (readonly [number, boolean?])[],
  { version = 0, gap = 0 } = {},
): Buffer {
  const wide = version === 0 ? words : longs;
  const rows = references.map(([bytes, isIndex = false]) => words(bytes + (isIndex ? 2 ** 31 : 0), 1, 0));
  const count = Buffer.alloc(4);
  count.writeUInt16BE(references.length, 2);
  return box('sidx', words(version * 2 ** 24, 1, 1000), wide(0), wide(gap), count, ...rows);
}

/** Random access tables of one track, with rows that end in numbers of 1, 2 and 4 bytes. */
export function mfra(places: readonly number[], { version = 0 } = {}): Buffer {
  const wide = version === 0 ? words : longs;
  const rows = places.flatMap((place) => [wide(0, place), Buffer.alloc(7)]);
  const tfra = box('tfra', words(version * 2 ** 24, 1, 0b000111, places.length), ...rows);
  return box('mfra', tfra, box('mfro', words(0, 8 + tfra.length + 16)));
}
