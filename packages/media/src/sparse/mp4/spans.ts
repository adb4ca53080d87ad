/** Stretches of a file as two columns of numbers: a film has a hundred thousand of them, and as many objects take ten times the memory. */

/** Sorted, disjoint and not empty; bytes from `starts[i]` up to but not including `ends[i]`. */
export interface Spans {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

/** Sorts, drops empty ones and joins what touches or overlaps. */
export function joinSpans(starts: Float64Array, ends: Float64Array): Spans {
  const order = sortedOrder(starts);
  const joined = { starts: new Float64Array(starts.length), ends: new Float64Array(starts.length) };
  let count = 0;
  for (const place of order) {
    const start = starts[place] ?? 0;
    const end = ends[place] ?? 0;
    if (end <= start) continue;
    if (count > 0 && start <= (joined.ends[count - 1] ?? 0)) {
      joined.ends[count - 1] = Math.max(joined.ends[count - 1] ?? 0, end);
      continue;
    }
    joined.starts[count] = start;
    joined.ends[count] = end;
    count += 1;
  }
  return { starts: joined.starts.subarray(0, count), ends: joined.ends.subarray(0, count) };
}

/** All of several lists as one. */
export function unite(lists: readonly Spans[]): Spans {
  const count = lists.reduce((sum, { starts }) => sum + starts.length, 0);
  const starts = new Float64Array(count);
  const ends = new Float64Array(count);
  let at = 0;
  for (const list of lists) {
    starts.set(list.starts, at);
    ends.set(list.ends, at);
    at += list.starts.length;
  }
  return joinSpans(starts, ends);
}

export function bytesOf({ starts, ends }: Spans): number {
  let bytes = 0;
  for (let place = 0; place < starts.length; place += 1) bytes += (ends[place] ?? 0) - (starts[place] ?? 0);
  return bytes;
}

/** Chunks stand in the order of the file in nearly every file; then nothing has to be sorted. */
function sortedOrder(starts: Float64Array): Uint32Array {
  const order = Uint32Array.from(starts.keys());
  const isSorted = starts.every((start, place) => place === 0 || (starts[place - 1] ?? 0) <= start);
  return isSorted ? order : order.sort((a, b) => (starts[a] ?? 0) - (starts[b] ?? 0));
}
