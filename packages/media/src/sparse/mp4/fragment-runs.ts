/** Samples in fragments (ISO/IEC 14496-12 section 8.8), appended to the movie box's samples. */
import { type Box, childrenOf, Fields, MAX_ROWS, requiredBox, tableOf, UnsupportedLayout } from './boxes.ts';
import type { Fragment } from './fragment-walk.ts';
import { MAX_SAMPLE_BYTES, type readTracks, type SampleTable } from './tracks.ts';

type Mp4Track = ReturnType<typeof readTracks>[number];

const TFHD = { base: 0x1, description: 0x2, duration: 0x8, size: 0x10, baseIsMoof: 0x20000 };
const TRUN = { offset: 0x1, firstFlags: 0x4, duration: 0x100, size: 0x200, flags: 0x400, composition: 0x800 };

/** With these, tables may not tell where data are (section 8.7.8, ISO/IEC 23001-7). */
const ENCRYPTED = new Set(['senc', 'saiz', 'saio']);

/**
 * @param moov the payload of the movie box, @param fragments in the order of the file
 * @throws UnsupportedLayout when a fragment is not laid out as this module, or ffmpeg, knows it
 */
export function withFragments(
  tracks: readonly Mp4Track[],
  moov: Uint8Array,
  fragments: readonly Fragment[],
): Mp4Track[] {
  const defaults = defaultSizes(moov);
  const runs = new Map(tracks.map(({ id }) => [id, new Runs()]));
  if (runs.size !== tracks.length) throw new UnsupportedLayout('two tracks of one number');
  const room = { samples: MAX_ROWS };
  for (const fragment of fragments) readFragment(fragment, defaults, runs, room);
  return tracks.map((track) => ({
    ...track,
    samples: runs.get(track.id)?.behind(track.samples) ?? track.samples,
  }));
}

/** Sizes of a track's samples where its fragments have none (`trex`, section 8.8.3). */
function defaultSizes(moov: Uint8Array): Map<number, number> {
  const mvex = childrenOf(requiredBox(childrenOf(moov), 'mvex').payload);
  const sizes = new Map<number, number>();
  for (const trex of mvex.filter(({ type }) => type === 'trex')) {
    const fields = new Fields(trex);
    fields.unsigned32();
    const track = fields.unsigned32();
    fields.unsigned32();
    fields.unsigned32();
    if (sizes.has(track)) throw new UnsupportedLayout('two box trex for one track');
    sizes.set(track, fields.unsigned32());
  }
  return sizes;
}

function readFragment(
  { at, payload }: Fragment,
  defaults: ReadonlyMap<number, number>,
  runs: ReadonlyMap<number, Runs>,
  room: { samples: number },
): void {
  // By default, a track's samples follow the samples of the track before it.
  let follows = at;
  for (const traf of childrenOf(payload).filter(({ type }) => type === 'traf')) {
    const boxes = childrenOf(traf.payload);
    const odd = boxes.find(({ type }) => ENCRYPTED.has(type));
    if (odd !== undefined) throw new UnsupportedLayout(`encrypted: ${odd.type}`);
    const tfhd = requiredBox(boxes, 'tfhd');
    const { track, base, size } = readHeader(tfhd, at, follows, defaults);
    const into = runs.get(track);
    if (into === undefined) throw new UnsupportedLayout(`a fragment of no track: ${track}`);
    const truns = boxes.filter(({ type }) => type === 'trun');
    const [first] = truns;
    if (first !== undefined && boxes.indexOf(first) < boxes.indexOf(tfhd))
      throw new UnsupportedLayout('a run before its header');
    for (const [nth, trun] of truns.entries()) {
      const run = readRun(trun, size, room);
      // By the standard it follows the run before it; for ffmpeg it begins where that run began.
      if (run.offset === undefined && nth > 0)
        throw new UnsupportedLayout('a run that does not say where it lies');
      if (run.sizes.length === 0) continue;
      follows = into.add(base + (run.offset ?? 0), run.sizes);
    }
  }
}

function readHeader(
  tfhd: Box,
  moofAt: number,
  follows: number,
  defaults: ReadonlyMap<number, number>,
): { track: number; base: number; size: number } {
  const fields = new Fields(tfhd);
  const flags = fields.unsigned32();
  const track = fields.unsigned32();
  const size = defaults.get(track);
  if (size === undefined) throw new UnsupportedLayout(`no box trex for track ${track}`);
  const base = flags & TFHD.base ? fields.unsigned64() : flags & TFHD.baseIsMoof ? moofAt : follows;
  if (flags & TFHD.description) fields.unsigned32();
  if (flags & TFHD.duration) fields.unsigned32();
  return { track, base, size: flags & TFHD.size ? fields.unsigned32() : size };
}

function readRun(
  trun: Box,
  defaultSize: number,
  room: { samples: number },
): { offset: number | undefined; sizes: Uint32Array } {
  const fields = new Fields(trun);
  const flags = fields.unsigned32();
  fields.unsigned32();
  const offset = flags & TRUN.offset ? fields.signed32() : undefined;
  if (flags & TRUN.firstFlags) fields.unsigned32();
  const columns = [TRUN.duration, TRUN.size, TRUN.flags, TRUN.composition].filter((flag) => flags & flag);
  const { rows, view, at } = tableOf(trun, columns.length * 32, 4, fields.at - 8);
  room.samples -= rows;
  if (room.samples < 0) throw new UnsupportedLayout(`fragments of more than ${MAX_ROWS} samples`);
  const sizes = new Uint32Array(rows).fill(defaultSize);
  const column = columns.indexOf(TRUN.size);
  for (let row = 0; row < rows && column !== -1; row += 1)
    sizes[row] = view.getUint32(at + (row * columns.length + column) * 4);
  if (sizes.some((size) => size > MAX_SAMPLE_BYTES)) throw new UnsupportedLayout('a sample of a gigabyte');
  return { offset, sizes };
}

/** The runs of one track, each stored as a chunk is. */
class Runs {
  readonly #offsets: number[] = [];
  readonly #ends: number[] = [];
  readonly #sizes: Uint32Array[] = [];
  #samples = 0;

  /** @returns where it ends in the file */
  add(offset: number, sizes: Uint32Array): number {
    const end = sizes.reduce((sum, size) => sum + size, offset);
    if (offset < 0 || end > Number.MAX_SAFE_INTEGER) throw new UnsupportedLayout('a run outside of the file');
    this.#samples += sizes.length;
    this.#offsets.push(offset);
    this.#ends.push(this.#samples);
    this.#sizes.push(sizes);
    return end;
  }

  behind(table: SampleTable): SampleTable {
    if (this.#offsets.length === 0) return table;
    if (table.countsFrames && table.sizes.count > 0)
      throw new UnsupportedLayout('frames of sound before fragments');
    const before = table.sizes.count;
    const sizes = new Uint32Array(this.#samples);
    for (const [nth, run] of this.#sizes.entries()) sizes.set(run, nth === 0 ? 0 : this.#ends[nth - 1]);
    return {
      sizes: {
        count: before + sizes.length,
        of: (sample) => (sample < before ? table.sizes.of(sample) : (sizes[sample - before] ?? 0)),
      },
      offsets: joined(Float64Array, table.offsets, this.#offsets),
      firstSamples: joined(
        Uint32Array,
        table.firstSamples,
        this.#ends.map((end) => before + end),
      ),
      countsFrames: false,
    };
  }
}

function joined<Column extends Float64Array | Uint32Array>(
  Kind: new (length: number) => Column,
  first: Column,
  second: readonly number[],
): Column {
  const column = new Kind(first.length + second.length);
  column.set(first);
  column.set(second, first.length);
  return column;
}
