/** MP4 files made of boxes by hand (ISO/IEC 14496-12), with tables as a test wants them. */

export function box(type: string, ...content: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(content);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(bytes.length + 8);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, bytes]);
}

export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4);
  return bytes;
}

export function longs(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 8);
  for (const [index, value] of values.entries()) bytes.writeBigUInt64BE(BigInt(value), index * 8);
  return bytes;
}

export const FTYP = box('ftyp', Buffer.from('isom'), words(512), Buffer.from('isommp41'));

export interface TrackBoxes {
  readonly handler: string;
  readonly format: string;
  readonly id?: number;
  /** Boxes in the sample table besides `stsd`. */
  readonly tables: readonly Buffer[];
  /** Boxes in the track besides `tkhd` and `mdia`. */
  readonly others?: readonly Buffer[];
}

export function trak({ handler, format, id = 1, tables, others = [] }: TrackBoxes): Buffer {
  const stsd = box('stsd', words(0, 1), box(format, Buffer.alloc(28)));
  const hdlr = box('hdlr', words(0, 0), Buffer.from(handler), Buffer.alloc(13));
  return box(
    'trak',
    box('tkhd', words(1, 0, 0, id), Buffer.alloc(68)),
    ...others,
    box('mdia', hdlr, box('minf', box('stbl', stsd, ...tables))),
  );
}

export const stts = (samples: number, ticks = 1024) => box('stts', words(0, 1, samples, ticks));
export const stsc = (...rows: readonly number[]) => box('stsc', words(0, rows.length / 3, ...rows));
export const stsz = (...sizes: readonly number[]) => box('stsz', words(0, 0, sizes.length, ...sizes));
export const stco = (...offsets: readonly number[]) => box('stco', words(0, offsets.length, ...offsets));
export const co64 = (...offsets: readonly number[]) =>
  box('co64', words(0, offsets.length), longs(...offsets));

/** Sizes of 4, 8 or 16 bits. */
export function stz2(bits: 4 | 8 | 16, ...sizes: readonly number[]): Buffer {
  const hex = sizes.map((size) => size.toString(16).padStart(bits / 4, '0')).join('');
  return box(
    'stz2',
    words(0, bits, sizes.length),
    Buffer.from(hex.length % 2 === 0 ? hex : `${hex}0`, 'hex'),
  );
}

/** A track of samples of 100 bytes, one a chunk. */
export function plainTables(offsets: readonly number[]): Buffer[] {
  const samples = offsets.length;
  return [stts(samples), stsc(1, 1, 1), stsz(...offsets.map(() => 100)), stco(...offsets)];
}

export const mdat = (bytes: number) => box('mdat', Buffer.alloc(bytes));
