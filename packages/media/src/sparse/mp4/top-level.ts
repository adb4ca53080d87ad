/** The boxes on a file's top level (ISO/IEC 14496-12 section 6.3), read from any source. */
import type { SourceParts } from 'soundpost-outbound/ranges-parts';
import { boxHeader, childrenOf, MAX_HEADER_BYTES, UnsupportedLayout } from './boxes.ts';

/** A file of which parts can be read. */
export type ByteSource = Omit<SourceParts, 'fetch'>;

interface TopLevel {
  /** The payload of the movie box. */
  readonly moov: Uint8Array;
  /** Where each box begins. */
  readonly starts: readonly number[];
  /** Where fragments follow that the movie box announces (section 8.8.1). */
  readonly fragmentsAt: number | undefined;
}

/** A film of two hours whose every packet is a chunk has 6 MB. */
const MAX_MOVIE_BYTES = 32 * 1024 * 1024;

export const MAX_OTHER_BYTES = 8 * 1024 * 1024;

/** A file that is not fragmented has four to eight. */
const MAX_BOXES = 64;

/** Read only by the tables of the movie box. */
export const NOT_READ = new Set(['mdat', 'free', 'skip', 'wide']);

const FRAGMENTS = new Set(['moof', 'mfra', 'sidx', 'ssix', 'styp', 'emsg']);

/**
 * Reads every box except samples, as ffmpeg does when it opens the file: to the end, even after the
 * movie box. Fragments are not entered.
 * @throws UnsupportedLayout; what the source throws
 */
export async function readTopLevel(source: ByteSource): Promise<TopLevel> {
  const { sizeBytes } = source;
  const starts: number[] = [];
  let moov: Uint8Array | undefined;
  for (let at = 0; at < sizeBytes; ) {
    if (starts.length === MAX_BOXES) throw new UnsupportedLayout(`more than ${MAX_BOXES} boxes`);
    starts.push(at);
    const header = boxHeader(await source.read(at, Math.min(sizeBytes, at + MAX_HEADER_BYTES)));
    const end = header.sizeBytes === null ? sizeBytes : at + header.sizeBytes;
    if (end > sizeBytes) throw new UnsupportedLayout(`box ${header.type} goes beyond the end of the file`);
    const bytes = await readWhole(source, header.type, at, end);
    if (header.type === 'moov') {
      if (moov !== undefined) throw new UnsupportedLayout('two movie boxes');
      moov = bytes.subarray(header.headerBytes);
      if (childrenOf(moov).some(({ type }) => type === 'mvex')) return { moov, starts, fragmentsAt: end };
    }
    at = end;
  }
  if (moov === undefined) throw new UnsupportedLayout('no movie box');
  return { moov, starts, fragmentsAt: undefined };
}

/** @returns nothing for boxes whose content is never read */
async function readWhole(source: ByteSource, type: string, start: number, end: number): Promise<Uint8Array> {
  if (FRAGMENTS.has(type)) throw new UnsupportedLayout('fragments that no movie box announces');
  if (NOT_READ.has(type)) return new Uint8Array();
  const limit = type === 'moov' ? MAX_MOVIE_BYTES : MAX_OTHER_BYTES;
  if (end - start > limit) throw new UnsupportedLayout(`a box ${type} of ${end - start} bytes`);
  return source.read(start, end);
}
