/** The parts of an MP4 or MOV file that one of its audio tracks needs: most bytes are video. */
import { type ByteSpans, bytesOf, joinSpans, united } from 'soundpost-outbound/ranges-spans';
import { sniffContainer } from '../../sniff.ts';
import { UnsupportedLayout } from './boxes.ts';
import { withFragments } from './fragment-runs.ts';
import { readFragments } from './fragment-walk.ts';
import { type ByteSource, readTopLevel } from './top-level.ts';
import { readTracks, type SampleTable } from './tracks.ts';

export interface AudioIndex {
  /**
   * What ffmpeg reads before it uses a track, besides the index: each track's beginning, and
   * chapters' titles and pictures whole.
   */
  readonly lead: ByteSpans;
  readonly audioTracks: number;
  /** The bytes of an audio track, by its index. @throws UnsupportedLayout */
  track(place: number): ByteSpans;
}

/**
 * ffmpeg identifies a track by its first samples: it decodes one or two of audio, up to twenty of
 * H.264. It reads more only if these do not suffice, which concerns pictures alone.
 */
export const LEAD = { samples: 64, bytes: 1024 * 1024 };

const MAX_CHAPTER_BYTES = 8 * 1024 * 1024;

/** Of the file's bytes: then there is nothing to leave out. */
export const MOSTLY = 0.7;

/** ISO/IEC 14496-12 section 8.12 and old QuickTime: tables may not tell where data are. */
const ENCRYPTED = new Set(['enca', 'encv', 'enct', 'encs', 'drms', 'drmi']);

/**
 * Reads the index: `ftyp`, `moov` and all other boxes without samples.
 * @throws UnsupportedLayout when the file has to be read whole; what the source throws
 */
export async function readAudioIndex(source: ByteSource): Promise<AudioIndex> {
  const container = await sniffContainer(source);
  if (container?.demuxer !== 'mov') throw new UnsupportedLayout('no MP4 or MOV file');
  const { moov, starts, fragmentsAt } = await readTopLevel(source);
  const announced = readTracks(moov);
  const encrypted = announced.find(({ format }) => ENCRYPTED.has(format));
  if (encrypted !== undefined) throw new UnsupportedLayout(`encrypted: ${encrypted.format}`);
  if (announced.every(({ handler }) => handler !== 'soun')) throw new UnsupportedLayout('no audio track');
  // In a fragmented file this shows only after all fragments have been looked up.
  if (fragmentsAt !== undefined && announced.length === 1)
    throw new UnsupportedLayout('hardly anything but sound');
  const tracks =
    fragmentsAt === undefined
      ? announced
      : withFragments(announced, moov, await readFragments(source, fragmentsAt));
  const boundaries = boundariesOf(
    tracks.map(({ samples }) => samples),
    starts,
    source.sizeBytes,
  );
  const leadOf = ({ holdsChapters, samples }: ReturnType<typeof readTracks>[number]): ByteSpans => {
    const spans = holdsChapters ? trackSpans(samples, boundaries) : leadSpans(samples, LEAD, boundaries);
    if (holdsChapters && bytesOf(spans) > MAX_CHAPTER_BYTES) throw new UnsupportedLayout('large chapters');
    return spans;
  };
  const audio = tracks.filter(({ handler }) => handler === 'soun');
  const spans = audio.map(({ samples }) => trackSpans(samples, boundaries));
  const least = Math.min(...spans.map(bytesOf));
  if (least > MOSTLY * source.sizeBytes) throw new UnsupportedLayout('hardly anything but sound');
  return {
    lead: united(...tracks.map(leadOf)),
    audioTracks: audio.length,
    track(place) {
      const chosen = spans[place];
      if (chosen === undefined) throw new UnsupportedLayout(`no audio track ${place}`);
      return chosen;
    },
  };
}

// From a track's chunks to stretches of the file.

/** Where a stretch can end at the latest. */
interface Boundaries {
  readonly fileBytes: number;
  /** Where the next chunk of any track, or box, begins after a position; or the end of the file. */
  after(place: number): number;
}

function boundariesOf(
  tables: readonly SampleTable[],
  boxStarts: readonly number[],
  fileBytes: number,
): Boundaries {
  let places: Float64Array | undefined;
  return {
    fileBytes,
    after(place) {
      // Few files need it, and there are as many positions as chunks.
      places ??= sortedPlaces(tables, [...boxStarts, fileBytes]);
      return firstAfter(places, place);
    },
  };
}

function sortedPlaces(tables: readonly SampleTable[], others: readonly number[]): Float64Array {
  const places = new Float64Array(tables.reduce((sum, { offsets }) => sum + offsets.length, others.length));
  places.set(others);
  let at = others.length;
  for (const { offsets } of tables) {
    places.set(offsets, at);
    at += offsets.length;
  }
  return places.sort();
}

/**
 * All of a track's bytes.
 * @throws UnsupportedLayout when chunks are outside of the file or overlap
 */
function trackSpans(table: SampleTable, boundaries: Boundaries): ByteSpans {
  const starts = table.offsets;
  const ends = new Float64Array(starts.length);
  let bytes = 0;
  for (let chunk = 0; chunk < starts.length; chunk += 1) {
    const end = chunkEnd(table, chunk, boundaries);
    ends[chunk] = end;
    bytes += end - (starts[chunk] ?? 0);
  }
  const spans = joinSpans({ starts, ends });
  if (bytesOf(spans) !== bytes) throw new UnsupportedLayout('chunks of a track overlap');
  return spans;
}

function chunkEnd(table: SampleTable, chunk: number, { fileBytes, after }: Boundaries): number {
  const start = table.offsets[chunk] ?? 0;
  let end = start;
  if (table.countsFrames) {
    end = after(start);
  } else {
    const next = table.firstSamples[chunk + 1] ?? 0;
    for (let sample = table.firstSamples[chunk] ?? 0; sample < next; sample += 1)
      end += table.sizes.of(sample);
  }
  if (start > fileBytes || end > fileBytes) throw new UnsupportedLayout('a chunk outside of the file');
  return end;
}

/** The smallest position that is greater; the file's end is one of them. */
function firstAfter(places: Float64Array, start: number): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] ?? 0) > start) high = middle;
    else low = middle + 1;
  }
  return places[low] ?? Number.POSITIVE_INFINITY;
}

interface LeadLimits {
  readonly samples: number;
  readonly bytes: number;
}

/** A track's first samples: at least one. @throws UnsupportedLayout as {@link trackSpans} does */
function leadSpans(table: SampleTable, limits: LeadLimits, boundaries: Boundaries): ByteSpans {
  const starts: number[] = [];
  const ends: number[] = [];
  let bytes = 0;
  for (let chunk = 0; chunk < table.offsets.length; chunk += 1) {
    const start = table.offsets[chunk] ?? 0;
    const length = table.countsFrames
      ? Math.min(chunkEnd(table, chunk, boundaries) - start, limits.bytes)
      : leadBytes(table, chunk, limits, bytes);
    if (start + length > boundaries.fileBytes) throw new UnsupportedLayout('a chunk outside of the file');
    starts.push(start);
    ends.push(start + length);
    bytes += length;
    if ((table.firstSamples[chunk + 1] ?? 0) >= limits.samples || bytes >= limits.bytes) break;
  }
  return joinSpans({ starts: Float64Array.from(starts), ends: Float64Array.from(ends) });
}

/** @param before the bytes of the chunks before it */
function leadBytes(table: SampleTable, chunk: number, limits: LeadLimits, before: number): number {
  const next = table.firstSamples[chunk + 1] ?? 0;
  let bytes = 0;
  for (let sample = table.firstSamples[chunk] ?? 0; sample < next; sample += 1) {
    if (sample > 0 && (sample >= limits.samples || before + bytes >= limits.bytes)) break;
    bytes += table.sizes.of(sample);
  }
  return bytes;
}
