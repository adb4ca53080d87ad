/** The tracks of a movie box (ISO/IEC 14496-12 section 8.2), enough to find their bytes. */
import {
  type Box,
  childrenOf,
  latin1,
  onlyBox,
  requiredBox,
  tableOf,
  UnsupportedLayout,
  viewOf,
} from './boxes.ts';

interface Mp4Track {
  readonly id: number;
  /** `soun`, `vide`, `text` … */
  readonly handler: string;
  /** Whether another track names it as its chapters (QuickTime File Format, "Chapter lists"). */
  readonly holdsChapters: boolean;
  /** The sample entry's type: `mp4a`, `avc1` …; empty when there is no entry. */
  readonly format: string;
  readonly samples: SampleTable;
}

/** As many as a file offers (probe.ts). */
const MAX_TRACKS = 64;

/** Without fragments. @param moov payload of the movie box. @throws UnsupportedLayout */
export function readTracks(moov: Uint8Array): Mp4Track[] {
  const boxes = childrenOf(moov);
  // cmov is packed, rmra names other files.
  const odd = boxes.find(({ type }) => ['cmov', 'rmra'].includes(type));
  if (odd !== undefined) throw new UnsupportedLayout(`a movie with ${odd.type}`);
  const traks = boxes.filter(({ type }) => type === 'trak').map(({ payload }) => childrenOf(payload));
  if (traks.length > MAX_TRACKS) throw new UnsupportedLayout(`${traks.length} tracks`);
  const chapterIds = new Set(traks.flatMap(chapterReferences));
  return traks.map((trak) => readTrack(trak, chapterIds));
}

function readTrack(trak: readonly Box[], chapterIds: ReadonlySet<number>): Mp4Track {
  const mdia = childrenOf(requiredBox(trak, 'mdia').payload);
  const minf = childrenOf(requiredBox(mdia, 'minf').payload);
  const stbl = childrenOf(requiredBox(minf, 'stbl').payload);
  const id = trackId(requiredBox(trak, 'tkhd').payload);
  return {
    id,
    handler: latin1(requiredBox(mdia, 'hdlr').payload, 8),
    holdsChapters: chapterIds.has(id),
    // Version and flags, the number of entries, then the first one: its size and its type.
    format: latin1(requiredBox(stbl, 'stsd').payload, 12),
    samples: readSampleTable(stbl),
  };
}

function trackId(tkhd: Uint8Array): number {
  // Version 1 has 64-bit times in front of it.
  const at = tkhd[0] === 1 ? 20 : 12;
  if (tkhd.length < at + 4) throw new UnsupportedLayout('box tkhd breaks off');
  return viewOf(tkhd).getUint32(at);
}

function chapterReferences(trak: readonly Box[]): number[] {
  const tref = onlyBox(trak, 'tref');
  const chap = tref && onlyBox(childrenOf(tref.payload), 'chap');
  if (chap === undefined) return [];
  const view = viewOf(chap.payload);
  return Array.from({ length: Math.min(MAX_TRACKS, chap.payload.length >> 2) }, (_, row) =>
    view.getUint32(row * 4),
  );
}

// Where the samples of a track lie: its chunks (section 8.7), each a stretch of bytes without gaps.

export interface SampleTable {
  /** Of all samples, in their order. */
  readonly sizes: SampleSizes;
  /** Position in the file of each chunk. */
  readonly offsets: Float64Array;
  /** Number of the first sample of each chunk, and at the end the number of all samples. */
  readonly firstSamples: Uint32Array;
  /**
   * Whether the table may count audio frames of unknown size, as QuickTime does for uncompressed
   * audio and old codecs ("Sound sample descriptions"), where the description gives the sizes.
   */
  readonly countsFrames: boolean;
}

interface SampleSizes {
  readonly count: number;
  of(sample: number): number;
}

/** ffmpeg refuses a larger sample too. */
export const MAX_SAMPLE_BYTES = 0x3fff_ffff;

/** @param stbl boxes of the sample table. @throws UnsupportedLayout if tables are missing or bad */
function readSampleTable(stbl: readonly Box[]): SampleTable {
  const sizes = readSizes(stbl);
  const offsets = readOffsets(requiredBox(stbl, 'stco', 'co64'));
  const firstSamples = readFirstSamples(requiredBox(stbl, 'stsc'), offsets.length);
  const counted = firstSamples.at(-1) ?? 0;
  if (counted !== sizes.count)
    throw new UnsupportedLayout(`${sizes.count} samples, ${counted} of them in chunks`);
  return { sizes, offsets, firstSamples, countsFrames: isOneTickEach(stbl) };
}

function readSizes(stbl: readonly Box[]): SampleSizes {
  const stsz = onlyBox(stbl, 'stsz', 'stz2');
  if (stsz === undefined) throw new UnsupportedLayout('no box stsz or stz2');
  return stsz.type === 'stsz' ? plainSizes(stsz) : compactSizes(stsz);
}

function plainSizes(stsz: Box): SampleSizes {
  const constant = stsz.payload.length >= 12 ? tableOf(stsz, 0, 8).view.getUint32(4) : 0;
  if (constant > MAX_SAMPLE_BYTES) throw new UnsupportedLayout(`samples of ${constant} bytes`);
  if (constant > 0) {
    return { count: tableOf(stsz, 0, 8).rows, of: () => constant };
  }
  const { rows, view, at } = tableOf(stsz, 32, 8);
  return { count: rows, of: (sample) => view.getUint32(at + sample * 4) };
}

/** Sizes of 4, 8 or 16 bits (section 8.7.3.3). */
function compactSizes(stz2: Box): SampleSizes {
  const bits = stz2.payload[7] ?? 0;
  const { rows, view, at } = tableOf(stz2, bits, 8);
  const of = {
    4: (sample: number) => (view.getUint8(at + (sample >> 1)) >> (sample % 2 === 0 ? 4 : 0)) & 15,
    8: (sample: number) => view.getUint8(at + sample),
    16: (sample: number) => view.getUint16(at + sample * 2),
  }[bits];
  if (of === undefined) throw new UnsupportedLayout(`sample sizes of ${bits} bits`);
  return { count: rows, of };
}

function readOffsets(box: Box): Float64Array {
  const isLarge = box.type === 'co64';
  const { rows, view, at } = tableOf(box, isLarge ? 64 : 32);
  const offsets = new Float64Array(rows);
  for (let row = 0; row < rows; row += 1) {
    offsets[row] = isLarge ? Number(view.getBigUint64(at + row * 8)) : view.getUint32(at + row * 4);
  }
  return offsets;
}

/** Runs of chunks with the same number of samples: a run goes on until the next one begins. */
function readFirstSamples(stsc: Box, chunks: number): Uint32Array {
  const runs = tableOf(stsc, 96);
  const firstSamples = new Uint32Array(chunks + 1);
  if (chunks > 0 && (runs.rows === 0 || runStart(runs, 0) !== 1))
    throw new UnsupportedLayout('chunks of no run');
  let samples = 0;
  for (let run = 0; run < runs.rows; run += 1) {
    const first = runStart(runs, run);
    const next = run + 1 < runs.rows ? runStart(runs, run + 1) : chunks + 1;
    const perChunk = runs.view.getUint32(runs.at + run * 12 + 4);
    if (next <= first || perChunk === 0) throw new UnsupportedLayout('runs of chunks out of order');
    for (let chunk = first; chunk < next && chunk <= chunks; chunk += 1) {
      firstSamples[chunk - 1] = samples;
      samples += perChunk;
      if (samples > 0xffff_ffff) throw new UnsupportedLayout('more samples than can be counted');
    }
  }
  firstSamples[chunks] = samples;
  return firstSamples;
}

function runStart({ view, at }: ReturnType<typeof tableOf>, run: number): number {
  return view.getUint32(at + run * 12);
}

/** If each sample lasts one tick, ffmpeg takes them for frames of audio instead of packets. */
function isOneTickEach(stbl: readonly Box[]): boolean {
  const { rows, view, at } = tableOf(requiredBox(stbl, 'stts'), 64);
  return rows === 1 && view.getUint32(at + 4) === 1;
}
