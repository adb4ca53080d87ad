/** Where a recording pauses, how pauses are shortened, where notes are cut (decisions C; pure). */

/** Loudness of each 20 ms, dB below full scale; see pcm-file.ts. */
export type Levels = Float32Array;

/** Windows a second. */
export const WINDOWS_PER_SECOND = 50;

/** From a window up to, but without, another one. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** A stop inside a word is silent for up to 150 ms. */
const SHORTEST_PAUSE = 0.2 * WINDOWS_PER_SECOND;
/** Longer pauses are shortened, to {@link LEFT_OF_LONG}. */
const LONGEST_KEPT = 1 * WINDOWS_PER_SECOND;
const LEFT_OF_LONG = 0.5 * WINDOWS_PER_SECOND;

/** Quieter is silence, whatever surrounds it. */
const SILENCE_DB = -70;
/** With a smaller range nothing is a pause: music, noise. */
const LEAST_RANGE_DB = 12;
/** How far up from the quietest to the loudest level a pause reaches. */
const PAUSE_SHARE = 0.3;

/** The highest level of a pause. */
function pauseLevel(levels: Levels): number {
  const sorted = Float32Array.from(levels, (level) => Math.max(level, SILENCE_DB)).sort();
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? SILENCE_DB;
  const quiet = at(0.02);
  const loud = at(0.9);
  return loud - quiet < LEAST_RANGE_DB ? SILENCE_DB : quiet + PAUSE_SHARE * (loud - quiet);
}

/** Pauses of 200 ms and more, in order. */
export function pausesIn(levels: Levels): Stretch[] {
  const limit = pauseLevel(levels);
  const pauses: Stretch[] = [];
  let from = 0;
  for (let window = 0; window <= levels.length; window += 1) {
    const level = levels[window];
    if (level !== undefined && level <= limit) continue;
    if (window - from >= SHORTEST_PAUSE) pauses.push({ from, to: window });
    from = window + 1;
  }
  return pauses;
}

/** What remains when pauses above 1 s are shortened to 0.5 s, by cutting out their middle. */
export function withoutLongPauses(levels: Levels): Stretch[] {
  const kept: Stretch[] = [];
  let from = 0;
  for (const pause of pausesIn(levels)) {
    const length = pause.to - pause.from;
    if (length <= LONGEST_KEPT) continue;
    const to = pause.from + Math.ceil(LEFT_OF_LONG / 2);
    kept.push({ from, to });
    from = to + length - LEFT_OF_LONG;
  }
  return [...kept, { from, to: levels.length }];
}

/**
 * The window at which a note that begins at `from` ends, at `latest` at the latest: in the middle
 * of the longest pause of its last third. Without a pause, before the quietest 20 ms.
 */
export function cutBefore(levels: Levels, pauses: readonly Stretch[], from: number, latest: number): number {
  const earliest = latest - Math.floor((latest - from) / 3);
  let longest: Stretch | undefined;
  for (const pause of pauses) {
    const inside = { from: Math.max(pause.from, earliest), to: Math.min(pause.to, latest) };
    const isLong = inside.to - inside.from >= SHORTEST_PAUSE;
    if (isLong && (longest === undefined || inside.to - inside.from > longest.to - longest.from)) {
      longest = inside;
    }
  }
  if (longest !== undefined) return Math.floor((longest.from + longest.to) / 2);
  let quietest = latest;
  for (let window = earliest; window < latest; window += 1) {
    if ((levels[window] ?? 0) < (levels[quietest] ?? 0)) quietest = window;
  }
  return quietest;
}
