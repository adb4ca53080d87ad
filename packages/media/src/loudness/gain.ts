/** Which gain and which ceiling bring a loudness to its target, from what was measured (pure). */
import type { Gain } from '../graph.ts';
import type { MeasuredLoudness } from '../statistics.ts';

/** The ceiling that a finished file has to keep (EBU R 128 section 1: −1 dBTP). ebur128 rounds to 0.1 dB: one step of it is margin. */
const MAX_PEAK_DBTP = -1.1;

/** Lossy encoders move peaks; half a decibel is what MP3 at 192k needs. More is found out by measuring. */
const FIRST_CEILING_DBTP = -1.6;

/** Between two samples a peak is seldom higher than this over the higher one of them; what is comes out when the finished file is measured. */
const BETWEEN_SAMPLES_DB = 1;

/** As near as this is near enough; half of what is promised. */
const TOLERANCE_LU = 0.25;

/** `alimiter` takes no lower limit than −24 dB. */
const LOWEST_CEILING_DBTP = -20;

/** The gain by the source's loudness, with a limiter where its peaks would come over the ceiling. */
export function firstGain({ lufs, peakDb }: MeasuredLoudness, targetLufs: number): Gain {
  // Silence has no loudness to bring anywhere.
  if (lufs === null) return { gainDb: 0, ceilingDbtp: null };
  const gainDb = targetLufs - lufs;
  const needsLimiter = (peakDb ?? 0) + BETWEEN_SAMPLES_DB + gainDb > FIRST_CEILING_DBTP;
  return { gainDb, ceilingDbtp: needsLimiter ? FIRST_CEILING_DBTP : null };
}

/** @returns null when it is loud enough, or silent */
export function gainForLoudness(gain: Gain, lufs: number | null, targetLufs: number): Gain | null {
  const missingLu = lufs === null ? 0 : targetLufs - lufs;
  return Math.abs(missingLu) <= TOLERANCE_LU ? null : { ...gain, gainDb: gain.gainDb + missingLu };
}

/** @returns null when the peaks are under the ceiling */
export function gainForPeaks(gain: Gain, { peakDb }: MeasuredLoudness): Gain | null {
  const excessDb = excessOf(peakDb);
  if (excessDb <= 0) return null;
  const ceiling = (gain.ceilingDbtp ?? FIRST_CEILING_DBTP) - excessDb - 0.1;
  return { ...gain, ceilingDbtp: Math.max(LOWEST_CEILING_DBTP, ceiling) };
}

/** How far a measured file is from what it should be: first come the peaks over the ceiling, then the loudness. Negative: `a` is the better one. */
export function compareMisses(a: MeasuredLoudness, b: MeasuredLoudness, targetLufs: number): number {
  return (
    Math.max(0, excessOf(a.peakDb)) - Math.max(0, excessOf(b.peakDb)) ||
    missOf(a.lufs, targetLufs) - missOf(b.lufs, targetLufs)
  );
}

/** LU; silence misses nothing. */
export function missOf(lufs: number | null, targetLufs: number): number {
  return lufs === null ? 0 : Math.abs(lufs - targetLufs);
}

function excessOf(peakDb: number | null): number {
  return (peakDb ?? Number.NEGATIVE_INFINITY) - MAX_PEAK_DBTP;
}
