/** Fragment starts: segment index (ISO/IEC 14496-12 8.16.3), random access (8.8.9 to 8.8.11). */
import { type Box, boxHeader, childrenOf, Fields, tableOf, UnsupportedLayout, viewOf } from './boxes.ts';

/** The size of `mfro`, the last box of the random access tables, which holds their length. */
export const MFRO_BYTES = 16;

/**
 * Where the listed stretches begin, fragments or further indexes, and where the last one ends.
 * @param end of the box in the file, from which offsets count
 * @throws UnsupportedLayout
 */
export function placesOfSidx(sidx: Box, end: number): number[] {
  const fields = new Fields(sidx);
  const version = fields.unsigned32() >>> 24;
  fields.unsigned32();
  fields.unsigned32();
  const wide = (): number => (version === 0 ? fields.unsigned32() : fields.unsigned64());
  wide();
  let place = end + wide();
  fields.unsigned16();
  const places = [place];
  for (let left = fields.unsigned16(); left > 0; left -= 1) {
    // The highest bit tells whether it is an index; either begins with a box.
    place += fields.unsigned32() & 0x7fff_ffff;
    fields.unsigned32();
    fields.unsigned32();
    places.push(place);
  }
  return places;
}

/** Where the fragments begin that random access tables list. @throws UnsupportedLayout */
export function placesOfMfra(mfra: Box): Set<number> {
  const tables = childrenOf(mfra.payload).filter(({ type }) => type === 'tfra');
  return new Set(tables.flatMap(placesOfTfra));
}

function placesOfTfra(tfra: Box): number[] {
  const fields = new Fields(tfra);
  const isWide = fields.unsigned32() >>> 24 !== 0;
  fields.unsigned32();
  const lengths = fields.unsigned32();
  // Each row ends with three numbers of one to four bytes; two bits each hold their lengths.
  const numberBytes = [4, 2, 0].reduce((sum, shift) => sum + ((lengths >> shift) & 3) + 1, 0);
  const rowBytes = (isWide ? 16 : 8) + numberBytes;
  const { rows, view, at } = tableOf(tfra, rowBytes * 8, fields.at);
  return Array.from({ length: rows }, (_, row) =>
    isWide ? Number(view.getBigUint64(at + row * rowBytes + 8)) : view.getUint32(at + row * rowBytes + 4),
  );
}

/** @param tail the end of the file @returns length of its random access tables, if it has any */
export function mfraBytes(tail: Uint8Array): number | undefined {
  if (tail.length < MFRO_BYTES) return undefined;
  const mfro = tail.subarray(-MFRO_BYTES);
  const { type, sizeBytes } = headerOrNone(mfro);
  return type === 'mfro' && sizeBytes === MFRO_BYTES ? viewOf(mfro).getUint32(12) : undefined;
}

/** The end of a file may be anything. */
function headerOrNone(bytes: Uint8Array): { type?: string; sizeBytes?: number | null } {
  try {
    return boxHeader(bytes);
  } catch (error) {
    if (error instanceof UnsupportedLayout) return {};
    throw error;
  }
}
