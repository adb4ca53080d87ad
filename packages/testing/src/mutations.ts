/** Damage: what a broken disk, a cut connection, or somebody with a hex editor does to a file. */
import type { Random } from './random.ts';

type Mutation = (bytes: Buffer, random: Random) => Buffer;

const CUTS = [0, 1, 16, 64, 1024, 0.25, 0.5, 0.75, 0.99];
const FLIPS = [1, 10, 200, 0.01];
const ZEROED_HEADS = [4, 16, 64, 512, 4096];

/** ISO/IEC 14496-12 boxes whose sizes and counts steer the parser. */
const BOXES = [
  'ftyp',
  'moov',
  'trak',
  'mdia',
  'minf',
  'stbl',
  'stsd',
  'stsz',
  'stts',
  'stsc',
  'stco',
  'elst',
  'mdat',
  'udta',
  'meta',
];
const RIFF_CHUNKS = ['RIFF', 'LIST', 'fmt ', 'data', 'avih', 'strf', 'idx1', 'FORM', 'COMM', 'SSND'];
/** 0 is "to the end of the file" and 1 "the size follows" (section 4.2). */
const BOX_SIZES = [0, 1, 7, 8, 0x7fffffff, 0xfffffff7, 0xffffffff];

export const mutations: Readonly<Record<string, Mutation>> = {
  cut(bytes, random) {
    const at = random.pick(CUTS);
    return bytes.subarray(0, at < 1 ? Math.floor(bytes.length * at) : at);
  },

  flip(bytes, random) {
    const amount = random.pick(FLIPS);
    const flips = amount < 1 ? Math.ceil(bytes.length * 8 * amount) : amount;
    const damaged = Buffer.from(bytes);
    for (let flip = 0; flip < flips; flip += 1) {
      const at = random.below(damaged.length);
      damaged.writeUInt8(damaged.readUInt8(at) ^ (1 << random.below(8)), at);
    }
    return damaged;
  },

  /** In the headers alone, where each bit steers something. */
  'flip-head'(bytes, random) {
    const damaged = Buffer.from(bytes);
    for (let flip = 0; flip < 12; flip += 1) {
      const at = random.below(Math.min(damaged.length, 2048));
      damaged.writeUInt8(random.below(256), at);
    }
    return damaged;
  },

  /** Behind the magic numbers, or over them. */
  'zero-head'(bytes, random) {
    const from = random.pick([0, 4, 12]);
    return zeroed(bytes, from, random.pick(ZEROED_HEADS));
  },

  'zero-hole'(bytes, random) {
    return zeroed(bytes, random.below(bytes.length), random.below(8192));
  },

  /** The size of a box, in front of its name, or of a chunk, after it. */
  size(bytes, random) {
    const damaged = Buffer.from(bytes);
    const places = [
      ...placesOf(damaged, BOXES).map((at) => ({ at: at - 4, littleEndian: false })),
      ...placesOf(damaged, RIFF_CHUNKS).map((at) => ({ at: at + 4, littleEndian: true })),
    ].filter(({ at }) => at >= 0 && at + 4 <= damaged.length);
    // Elsewhere sizes are anywhere.
    const { at, littleEndian } =
      places.length > 0
        ? random.pick(places)
        : { at: random.below(Math.max(1, Math.min(512, damaged.length - 4))), littleEndian: false };
    const size = random.pick(BOX_SIZES);
    if (littleEndian) damaged.writeUInt32LE(size, at);
    else damaged.writeUInt32BE(size, at);
    return damaged;
  },

  /**
   * The number of entries of a table (after its box's name, version and flags), where a box has
   * such a table.
   */
  count(bytes, random) {
    const damaged = Buffer.from(bytes);
    const places = placesOf(damaged, ['stsd', 'stsz', 'stts', 'stsc', 'stco', 'elst', 'dref', 'ctts'])
      .map((at) => at + 8)
      .filter((at) => at + 4 <= damaged.length);
    if (places.length > 0)
      damaged.writeUInt32BE(random.pick([0x10000, 0x7fffffff, 0xffffffff]), random.pick(places));
    return damaged;
  },

  repeat(bytes, random) {
    const from = random.below(bytes.length);
    const part = bytes.subarray(from, from + 1 + random.below(4096));
    return Buffer.concat([bytes.subarray(0, from), ...Array<Buffer>(20).fill(part), bytes.subarray(from)]);
  },

  shuffle(bytes, random) {
    const middle = Math.floor(bytes.length / 2);
    const cut = Math.min(middle, 64 + random.below(2048));
    return Buffer.concat([bytes.subarray(0, cut), bytes.subarray(middle), bytes.subarray(cut, middle)]);
  },
};

function zeroed(bytes: Buffer, from: number, length: number): Buffer {
  return Buffer.from(bytes).fill(0, from, Math.min(bytes.length, from + length));
}

function placesOf(bytes: Buffer, names: readonly string[]): number[] {
  const places: number[] = [];
  for (const name of names) {
    for (let at = bytes.indexOf(name, 0, 'latin1'); at >= 0; at = bytes.indexOf(name, at + 1, 'latin1')) {
      places.push(at);
      if (places.length > 200) return places;
    }
  }
  return places;
}
