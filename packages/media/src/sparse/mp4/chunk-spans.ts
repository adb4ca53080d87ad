/** From a track's chunks to stretches of the file. */
import { UnsupportedLayout } from './boxes.ts';
import type { SampleTable } from './sample-table.ts';
import { bytesOf, joinSpans, type Spans } from './spans.ts';

/** Where a stretch can end at the latest. */
interface Boundaries {
  readonly fileBytes: number;
  /** Where something else begins after a place, a chunk of any track or a box; or the end of the file. */
  after(place: number): number;
}

export function boundariesOf(
  tables: readonly SampleTable[],
  boxStarts: readonly number[],
  fileBytes: number,
): Boundaries {
  let places: Float64Array | undefined;
  return {
    fileBytes,
    after(place) {
      // Few files ask, and there are as many places as chunks.
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
 * @throws UnsupportedLayout when chunks lie outside of the file or over one another
 */
export function trackSpans(table: SampleTable, boundaries: Boundaries): Spans {
  const starts = table.offsets;
  const ends = new Float64Array(starts.length);
  let bytes = 0;
  for (let chunk = 0; chunk < starts.length; chunk += 1) {
    const end = chunkEnd(table, chunk, boundaries);
    ends[chunk] = end;
    bytes += end - (starts[chunk] ?? 0);
  }
  const spans = joinSpans(starts, ends);
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

/** The least of the places that is greater; the file's end is one of them. */
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

/** The first samples of a track, up to both limits but one at least. @throws UnsupportedLayout as {@link trackSpans} does */
export function leadSpans(table: SampleTable, limits: LeadLimits, boundaries: Boundaries): Spans {
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
  return joinSpans(Float64Array.from(starts), Float64Array.from(ends));
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
