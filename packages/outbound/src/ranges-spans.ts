/**
 * Spans of a file, and how they are grouped into requests. They are two columns of numbers: a film
 * has a hundred thousand spans, and as many objects take ten times the memory.
 */

/** Sorted, disjoint, not empty; bytes from `starts[i]` up to but not including `ends[i]`. */
export interface ByteSpans {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

export interface ByteSpan {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** Combines any spans, in any order. */
export function spansOf(list: readonly ByteSpan[]): ByteSpans {
  const starts = Float64Array.from(list, ({ start }) => start);
  return joinSpans({ starts, ends: Float64Array.from(list, ({ end }) => end) });
}

/** Sorts, drops empty spans, and joins those no further apart than `maxGapBytes`. */
export function joinSpans({ starts, ends }: ByteSpans, maxGapBytes = 0): ByteSpans {
  const joined = { starts: new Float64Array(starts.length), ends: new Float64Array(starts.length) };
  let count = 0;
  for (const place of sortedOrder(starts)) {
    const start = starts[place] ?? 0;
    const end = ends[place] ?? 0;
    if (end <= start) continue;
    const reached = joined.ends[count - 1] ?? 0;
    if (count > 0 && start - reached <= maxGapBytes) {
      joined.ends[count - 1] = Math.max(reached, end);
      continue;
    }
    joined.starts[count] = start;
    joined.ends[count] = end;
    count += 1;
  }
  return { starts: joined.starts.subarray(0, count), ends: joined.ends.subarray(0, count) };
}

/** The spans are nearly always sorted already, so check before sorting. */
function sortedOrder(starts: Float64Array): Uint32Array {
  const order = Uint32Array.from(starts.keys());
  const isSorted = starts.every((start, place) => place === 0 || (starts[place - 1] ?? 0) <= start);
  return isSorted ? order : order.sort((a, b) => (starts[a] ?? 0) - (starts[b] ?? 0));
}

/** The union of several lists. */
export function united(...lists: readonly ByteSpans[]): ByteSpans {
  return lists.reduce(unitedPair, spansOf([]));
}

function unitedPair(one: ByteSpans, other: ByteSpans): ByteSpans {
  const starts = new Float64Array(one.starts.length + other.starts.length);
  const ends = new Float64Array(starts.length);
  let count = 0;
  for (let a = 0, b = 0; a < one.starts.length || b < other.starts.length; ) {
    const isOne =
      (one.starts[a] ?? Number.POSITIVE_INFINITY) <= (other.starts[b] ?? Number.POSITIVE_INFINITY);
    const start = (isOne ? one.starts[a] : other.starts[b]) ?? 0;
    const end = (isOne ? one.ends[a] : other.ends[b]) ?? 0;
    if (isOne) a += 1;
    else b += 1;
    const reached = ends[count - 1] ?? -1;
    if (start <= reached) ends[count - 1] = Math.max(reached, end);
    else {
      starts[count] = start;
      ends[count] = end;
      count += 1;
    }
  }
  return { starts: starts.subarray(0, count), ends: ends.subarray(0, count) };
}

/** The part of `spans` that is not in `others`. */
export function without(spans: ByteSpans, others: ByteSpans): ByteSpans {
  const left: ByteSpan[] = [];
  let other = 0;
  for (let place = 0; place < spans.starts.length; place += 1) {
    let start = spans.starts[place] ?? 0;
    const end = spans.ends[place] ?? 0;
    while (other < others.ends.length && (others.ends[other] ?? 0) <= start) other += 1;
    for (let next = other; start < end; next += 1) {
      const gapEnd = Math.min(end, others.starts[next] ?? end);
      if (gapEnd > start) left.push({ start, end: gapEnd });
      start = Math.max(gapEnd, others.ends[next] ?? end);
    }
  }
  return spansOf(left);
}

export function bytesOf({ starts, ends }: ByteSpans): number {
  return starts.reduce((sum, start, place) => sum + (ends[place] ?? 0) - start, 0);
}

/** Block size of most file systems. */
const BLOCK_BYTES = 4_096;

/** Disk space of spans in a sparse file: whole blocks, however little of them is used. */
export function roomFor({ starts, ends }: ByteSpans): number {
  let bytes = 0;
  let reached = 0;
  for (let place = 0; place < starts.length; place += 1) {
    const from = Math.max(reached, Math.floor((starts[place] ?? 0) / BLOCK_BYTES) * BLOCK_BYTES);
    reached = Math.ceil((ends[place] ?? 0) / BLOCK_BYTES) * BLOCK_BYTES;
    bytes += Math.max(0, reached - from);
  }
  return bytes;
}

/** A batch is one request. Servers limit the number of ranges and the length of the header. */
export interface BatchLimits {
  readonly ranges: number;
  readonly bytes: number;
}

/** A span longer than a batch is split, so that all connections have work until the end. */
export function* batchesOf({ starts, ends }: ByteSpans, limits: BatchLimits): Generator<readonly ByteSpan[]> {
  let batch: ByteSpan[] = [];
  let bytes = 0;
  for (let place = 0; place < starts.length; place += 1) {
    const end = ends[place] ?? 0;
    for (let start = starts[place] ?? 0; start < end; ) {
      const span = { start, end: Math.min(end, start + limits.bytes - bytes) };
      batch.push(span);
      bytes += span.end - span.start;
      start = span.end;
      if (batch.length < limits.ranges && bytes < limits.bytes) continue;
      yield batch;
      batch = [];
      bytes = 0;
    }
  }
  if (batch.length > 0) yield batch;
}

/** RFC 9110 §14.1.2: both ends are inclusive. */
export function rangeHeader(spans: readonly ByteSpan[]): string {
  return `bytes=${spans.map(({ start, end }) => `${start}-${end - 1}`).join(',')}`;
}
