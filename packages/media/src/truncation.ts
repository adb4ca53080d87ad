/**
 * Whether a file has lost sound (decisions A2a), by what says where its sound is: an MP4's index, a
 * chunk or an object of samples, Matroska's clusters. Without one, nobody can tell. The size of
 * the element around them is often wrong, and proves nothing.
 */
import { LocalBytes } from './local-bytes.ts';
import type { Container } from './sniff.ts';
import { elementHeader, IDS, MAX_ELEMENT_HEADER_BYTES } from './sparse/matroska/elements.ts';
import { UnsupportedLayout } from './sparse/mp4/boxes.ts';
import { withFragments } from './sparse/mp4/fragment-runs.ts';
import { readTracks } from './sparse/mp4/tracks.ts';

export interface LocalFile {
  readonly path: string;
  /** {@link Container.demuxer} */
  readonly demuxer: Container['demuxer'];
  readonly sizeBytes: number;
}

/**
 * @param mostBytes that are read; default: as many as it takes
 * @returns the least that is missing, for callers; null if nothing is, or it is unknown
 * @throws {NotInPlace} where it takes more
 */
export async function missingEnd(
  { path, demuxer, sizeBytes }: LocalFile,
  mostBytes?: number,
): Promise<string | null> {
  const find = FINDERS[demuxer];
  if (find === undefined) return null;
  await using file = await LocalBytes.open(path, mostBytes);
  const missing = (await find(file, sizeBytes)) - sizeBytes;
  return missing > 0 ? `the file is incomplete: its last ${missing} bytes are missing` : null;
}

/** @returns where the sound ends, 0 if the file does not say. */
type EndFinder = (file: LocalBytes, sizeBytes: number) => Promise<number>;

const FINDERS: Readonly<Record<string, EndFinder>> = {
  mov: endOfMovie,
  wav: (file, sizeBytes) => endOfChunks(file, sizeBytes, RIFF),
  avi: (file, sizeBytes) => endOfChunks(file, sizeBytes, RIFF),
  w64: (file, sizeBytes) => endOfChunks(file, sizeBytes, WAVE64),
  aiff: (file, sizeBytes) => endOfChunks(file, sizeBytes, AIFF),
  caf: (file, sizeBytes) => endOfChunks(file, sizeBytes, CAF),
  asf: endOfAsf,
  matroska: endOfClusters,
};

/** A movie box is in memory while it is read. */
const MAX_MOVIE_BYTES = 64 * 1024 * 1024;

/** @returns its payload; undefined where it is larger than is read */
export async function movieBox(
  file: LocalBytes,
  { at, end }: { readonly at: number; readonly end: number },
): Promise<Buffer | undefined> {
  return end - at > MAX_MOVIE_BYTES ? undefined : file.at(at + 8, end - at - 8);
}

async function endOfMovie(file: LocalBytes, sizeBytes: number): Promise<number> {
  let movie: { at: number; end: number } | undefined;
  let fragment: { at: number; end: number } | undefined;
  let mediaEnd = 0;
  for await (const { type, at, end } of topLevelBoxes(file, sizeBytes)) {
    if (type === 'mdat') mediaEnd = end;
    if (type !== 'moov' && type !== 'moof') continue;
    if (end > sizeBytes) return end;
    if (type === 'moov') movie = { at, end };
    // Only in the last fragment can samples be missing.
    else fragment = { at, end };
  }
  const header = movie && (await movieBox(file, movie));
  const payload = fragment && (await movieBox(file, fragment));
  if (header === undefined) return mediaEnd;
  const last = fragment && payload && { at: fragment.at, payload };
  return endOfSamples(header, last) ?? mediaEnd;
}

/** Six hours in fragments of a fifth of a second, of up to four boxes each. */
const MAX_BOXES = 400_000;

/** ISO/IEC 14496-12 section 4.2: size and type; size 1: 64 bits follow, 0: to the file's end. */
export async function* topLevelBoxes(
  file: LocalBytes,
  sizeBytes: number,
): AsyncGenerator<{ type: string; at: number; end: number }> {
  let boxes = 0;
  for (let at = 0; at + 8 <= sizeBytes && boxes < MAX_BOXES; boxes += 1) {
    const head = await file.at(at, 16);
    const short = head.readUInt32BE(0);
    const size = short === 1 && head.length === 16 ? Number(head.readBigUInt64BE(8)) : short;
    if (size < 8) return;
    yield { type: head.toString('latin1', 4, 8), at, end: at + size };
    at += size;
  }
}

/** @returns undefined when the index is not laid out as we know it */
function endOfSamples(
  movie: Buffer,
  fragment: { at: number; payload: Buffer } | undefined,
): number | undefined {
  try {
    const tracks = readTracks(movie);
    const all = fragment === undefined ? tracks : withFragments(tracks, movie, [fragment]);
    const tables = all.filter(({ handler }) => handler === 'soun').map(({ samples }) => samples);
    // Of frames of unknown size only the places are known.
    if (tables.length === 0 || tables.some(({ countsFrames, sizes }) => countsFrames && sizes.of(0) < 2))
      return undefined;
    return Math.max(...tables.map(endOfTable));
  } catch (error) {
    if (error instanceof UnsupportedLayout) return undefined;
    throw error;
  }
}

function endOfTable({
  offsets,
  firstSamples,
  sizes,
}: ReturnType<typeof readTracks>[number]['samples']): number {
  let last = 0;
  for (const [chunk, offset] of offsets.entries()) {
    let end = offset;
    const next = firstSamples[chunk + 1] ?? 0;
    for (let sample = firstSamples[chunk] ?? 0; sample < next; sample += 1) end += sizes.of(sample);
    last = Math.max(last, end);
  }
  return last;
}

// Containers of chunks: an id and a size each.

interface Chunks {
  /** Bytes in front of the first one. */
  readonly startsAt: number;
  readonly headerBytes: number;
  /** Its length with the header; undefined where the program could not go back to write it. */
  lengthOf(header: Buffer, large: number | undefined): number | undefined;
  readonly padTo: number;
  /** Of the chunk with the samples. */
  isSamples(header: Buffer): boolean;
}

/** Written by programs that cannot seek back: 0, and sizes near 2 and 4 GiB. */
const isPlaceholder = (size: number): boolean => size === 0 || size >= 0xffff0000 || size >>> 16 === 0x7fff;

const startsWith = (header: Buffer, id: string): boolean => header.toString('latin1', 0, id.length) === id;

/** Also of an AVI above 1 GiB, which is several (OpenDML). */
const RIFF: Chunks = {
  startsAt: 0,
  headerBytes: 12,
  padTo: 2,
  lengthOf(header, large) {
    if (['RIFF', 'RF64', 'BW64'].some((id) => startsWith(header, id))) return 12;
    const size = header.readUInt32LE(4);
    // RF64 (EBU Tech 3306) has the size of its samples in its first chunk.
    if (size === 0xffffffff && large !== undefined) return 8 + large;
    return isPlaceholder(size) && RIFF.isSamples(header) ? undefined : 8 + size;
  },
  isSamples: (header) =>
    startsWith(header, 'data') || (startsWith(header, 'LIST') && header.toString('latin1', 8, 12) === 'movi'),
};

const AIFF: Chunks = {
  startsAt: 12,
  headerBytes: 8,
  padTo: 2,
  lengthOf: (header) => (isPlaceholder(header.readUInt32BE(4)) ? undefined : 8 + header.readUInt32BE(4)),
  isSamples: (header) => startsWith(header, 'SSND'),
};

/** Apple's Core Audio Format; a size of −1 is unknown. */
const CAF: Chunks = {
  startsAt: 8,
  headerBytes: 12,
  padTo: 1,
  lengthOf: (header) => (header.readBigInt64BE(4) < 0n ? undefined : 12 + Number(header.readBigInt64BE(4))),
  isSamples: (header) => startsWith(header, 'data'),
};

/** Sony's Wave64: ids of 16 bytes, sizes with the header. */
const WAVE64: Chunks = {
  startsAt: 40,
  headerBytes: 24,
  padTo: 8,
  lengthOf: (header) => Number(header.readBigUInt64LE(16)) || undefined,
  isSamples: (header) => startsWith(header, 'data'),
};

/** More than a day in clusters of five seconds, and the elements between them; chunks are fewer. */
const MAX_ELEMENTS = 100_000;

async function endOfChunks(file: LocalBytes, sizeBytes: number, chunks: Chunks): Promise<number> {
  let end = 0;
  let large: number | undefined;
  let at = chunks.startsAt;
  for (let count = 0; at + chunks.headerBytes <= sizeBytes && count < MAX_ELEMENTS; count += 1) {
    const header = await file.at(at, chunks.headerBytes);
    if (startsWith(header, 'ds64')) large = Number((await file.at(at + 16, 8)).readBigUInt64LE());
    const length = chunks.lengthOf(header, large);
    if (length === undefined) return 0;
    if (chunks.isSamples(header)) end = at + length;
    at += Math.max(chunks.headerBytes, Math.ceil(length / chunks.padTo) * chunks.padTo);
  }
  // Cut off before its samples: within the last read.
  return end || at;
}

/** ASF specification, 3.1, 3.2 and 5.1. */
const FILE_PROPERTIES = Buffer.from('a1dcab8c47a9cf118ee400c00c205365', 'hex');
const DATA_OBJECT = Buffer.from('3626b2758e66cf11a6d900aa0062ce6c', 'hex');

/** Together with the next read, less than the limit in place. */
const ASF_HEAD_BYTES = 48 * 1024;

async function endOfAsf(file: LocalBytes): Promise<number> {
  const head = await file.at(0, ASF_HEAD_BYTES);
  const at = head.indexOf(FILE_PROPERTIES);
  if (at < 0 || at + 92 > head.length) return 0;
  const isBroadcast = (head.readUInt32LE(at + 88) & 1) === 1;
  const dataAt = Number(head.readBigUInt64LE(16));
  const data = await file.at(dataAt, 24);
  if (isBroadcast || data.length < 24 || !startsWith(data, DATA_OBJECT.toString('latin1'))) return 0;
  return dataAt + Number(data.readBigUInt64LE(16));
}

/** RFC 9559: clusters have the blocks; a live recording gives the size of none. */
async function endOfClusters(file: LocalBytes, sizeBytes: number): Promise<number> {
  let end = 0;
  let at = 0;
  try {
    for (let element = 0; element < MAX_ELEMENTS && at < sizeBytes; element += 1) {
      const { id, headerBytes, payloadBytes } = elementHeader(await file.at(at, MAX_ELEMENT_HEADER_BYTES));
      if (id === IDS.segment) {
        at += headerBytes;
        continue;
      }
      if (payloadBytes === null) break;
      at += headerBytes + payloadBytes;
      if (id === IDS.cluster) end = at;
    }
  } catch (error) {
    if (!(error instanceof UnsupportedLayout)) throw error;
  }
  return end || at;
}

interface FlvEnd {
  /** Declared length: onMetaData's `duration`, an AMF number (Adobe FLV 10.1, E.4.4 and E.5). */
  readonly declaredSeconds: number;
  /** Whether its last tag is complete. */
  readonly isWhole: boolean;
}

/** FLV has no size. @returns null if the file does not declare its length. */
export async function flvEnd(path: string, sizeBytes: number): Promise<FlvEnd | null> {
  await using file = await LocalBytes.open(path);
  const head = await file.at(0, 64 * 1024);
  const name = Buffer.from('\0\x08duration\0', 'latin1');
  const at = head.indexOf(name) + name.length;
  if (at < name.length || at + 8 > head.length) return null;
  return { declaredSeconds: head.readDoubleBE(at), isWhole: await endsWithTag(file, sizeBytes) };
}

/** E.3: each tag is followed by its size, which includes eleven bytes of header. */
async function endsWithTag(file: LocalBytes, sizeBytes: number): Promise<boolean> {
  const last = await file.at(sizeBytes - 4, 4);
  const size = last.readUInt32BE(0);
  if (size + 4 > sizeBytes) return false;
  const tag = await file.at(sizeBytes - 4 - size, 4);
  return size >= 11 && tag.readUIntBE(1, 3) + 11 === size;
}
