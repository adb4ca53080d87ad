/** The tracks of a movie box (ISO/IEC 14496-12 section 8.2), as far as it takes to find their bytes. */
import { type Box, childrenOf, latin1, onlyBox, requiredBox, UnsupportedLayout, viewOf } from './boxes.ts';
import { readSampleTable, type SampleTable } from './sample-table.ts';

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

/** What ffmpeg is told as well, by `-max_streams`. */
const MAX_TRACKS = 64;

/** Without what stands in fragments. @param moov the payload of the movie box. @throws UnsupportedLayout when it is not laid out as this module knows it */
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
