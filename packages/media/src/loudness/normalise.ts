/**
 * Loudness normalisation (EBU R 128, ITU-R BS.1770): one constant gain, and a limiter for the peaks alone. Never
 * `loudnorm`: where the gain would lift a peak over the ceiling it falls back to a gain that follows the sound, and pumps.
 */
import { rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Gain } from '../graph.ts';
import type { Job } from '../input-run.ts';
import { pcmBytesOf } from '../output-size.ts';
import { type Parallelism, renderWanted } from '../parallel/render.ts';
import type { RenderedFile } from '../render.ts';
import type { LevelledPcm, Rendition } from '../rendition.ts';
import type { loudnessSummary, progressReport } from '../tool-output.ts';
import { levelTrack, measureFile, measureTrack } from './measure.ts';

type ProgressReport = ReturnType<typeof progressReport>;

type MeasuredLoudness = ReturnType<typeof loudnessSummary>;

export interface Loudness {
  /** Of the track as it goes into the encoder but for the gain. */
  readonly inputLufs: number;
  /** Of the finished file, decoded. */
  readonly outputLufs: number;
  readonly truePeakDbtp: number;
  readonly gainDb: number;
}

interface Normalised {
  readonly files: RenderedFile[];
  readonly loudness: Loudness;
  readonly gain: Gain;
}

interface NormaliseOptions {
  readonly report: ProgressReport;
  /** Where idle cores come from; none are used without. */
  readonly parallel: Parallelism | undefined;
  /** Told when the loudness is known and the work on it begins. */
  readonly onNormalise: () => void;
}

/** Of encoding, and before each of finding the gain that survives its limiter. */
const MAX_ENCODINGS = 5;
const MAX_LEVELLINGS = 4;

/** What silence measures as: ebur128's absolute gate, and a number that JSON can carry. */
const SILENCE_LUFS = -70;
const SILENCE_DBTP = -144;

/**
 * Measures, finds the gain, encodes, and measures the finished file. What needs a limiter is levelled before it is encoded, into PCM that the
 * encoder then reads: the limiter takes some of the loudness away, and trying a gain costs a quarter of an encoding. Where the codec lifts a peak over the
 * ceiling, once more with a lower one. Keeps what comes nearest to the target under the ceiling: a target that peaks stand in the way of is missed
 * rather than the ceiling broken (docs/decisions/0013-loudness.md).
 */
export async function normalise(
  job: Job,
  wanted: readonly Rendition[],
  targetLufs: number,
  { report, parallel, onNormalise }: NormaliseOptions,
): Promise<Normalised> {
  const [main] = wanted;
  if (main === undefined) throw new Error('nothing to normalise');
  const source = await measureTrack(job, main.plan, report.phase(0, 0.15));
  onNormalise();
  let gain = firstGain(source, targetLufs);
  let best: Attempt | undefined;
  for (let attempt = 0; attempt < MAX_ENCODINGS; attempt += 1) {
    const progress = partOf(report, attempt);
    const levelled = await level(job, main, gain, targetLufs, progress);
    const tried = await encode(job, wanted, levelled, parallel, progress);
    if (best === undefined || compareMisses(tried.measured, best.measured, targetLufs) < 0) {
      best = tried;
      await keep(job, wanted);
    }
    const next =
      gainForPeaks(levelled.gain, tried.measured) ??
      // What the limiter left is all that can be had; the codec may have changed it.
      gainForLoudness(levelled.gain, tried.measured.lufs, levelled.lufs ?? targetLufs);
    if (next === null) break;
    gain = next;
  }
  if (best === undefined) throw new Error('nothing was normalised');
  return {
    files: best.files.map((file, index) => ({ ...file, path: wanted[index]?.path ?? file.path })),
    gain: best.gain,
    loudness: {
      inputLufs: source.lufs ?? SILENCE_LUFS,
      outputLufs: best.measured.lufs ?? SILENCE_LUFS,
      truePeakDbtp: best.measured.peakDb ?? SILENCE_DBTP,
      gainDb: Number(best.gain.gainDb.toFixed(2)),
    },
  };
}

/** Each attempt has half of what is left of the whole. */
function partOf(report: ProgressReport, attempt: number): ProgressReport['phase'] {
  const span = 0.8 * 0.5 ** (attempt + 1);
  const start = 0.95 - 2 * span;
  return (from, to) => report.phase(start + span * from, start + span * to);
}

interface Levelled {
  readonly gain: Gain;
  /** The loudness that the encoder gets, as far as it was measured. */
  readonly lufs: number | null;
  /** null where the gain alone is enough, or the PCM would be larger than an output may be. */
  readonly pcm: LevelledPcm | null;
}

/** Finds the gain with which the limiter leaves the loudness that is wanted. */
async function level(
  job: Job,
  { plan }: Rendition,
  wish: Gain,
  targetLufs: number,
  progress: ProgressReport['phase'],
): Promise<Levelled> {
  if (wish.ceilingDbtp === null) return { gain: wish, lufs: null, pcm: null };
  const fits = pcmBytesOf(plan, { ...job.probe, maxAudioSeconds: job.maxAudioSeconds }) < job.maxOutputBytes;
  const path = fits ? join(job.scratch, 'levelled.wav') : null;
  const tryOut = async (gain: Gain, from: number, to: number): Promise<Levelled> => ({
    gain,
    ...(await levelTrack(job, plan, gain, path, progress(from, to))),
  });
  let best = await tryOut(wish, 0, 0.2);
  for (let nth = 2; nth <= MAX_LEVELLINGS; nth += 1) {
    const gain = gainForLoudness(best.gain, best.lufs, targetLufs);
    if (gain === null) break;
    const tried = await tryOut(gain, 0.4 - 0.4 * 0.5 ** (nth - 1), 0.4 - 0.4 * 0.5 ** nth);
    if (missOf(tried.lufs, targetLufs) >= missOf(best.lufs, targetLufs)) {
      // More gain brought too much of it, or nothing more: the file, if there is one, is written again as it was.
      return path === null ? best : tryOut(best.gain, 0.4, 0.4);
    }
    best = tried;
  }
  return best;
}

interface Attempt {
  readonly gain: Gain;
  readonly files: RenderedFile[];
  readonly measured: MeasuredLoudness;
}

async function encode(
  job: Job,
  wanted: readonly Rendition[],
  { gain, pcm }: Levelled,
  parallel: Parallelism | undefined,
  progress: ProgressReport['phase'],
): Promise<Attempt> {
  const renditions = wanted.map(
    (wish, index): Rendition => ({
      ...wish,
      mode: 'encode',
      path: attemptPath(job, wish.path),
      gain,
      // A voice message beside it has channels and a rate of its own, and is levelled as it is encoded.
      pcm: index === 0 ? pcm : null,
    }),
  );
  const files = await renderWanted(job, renditions, parallel, progress(0.4, 0.85));
  const [main] = renditions;
  if (main === undefined) throw new Error('nothing to normalise');
  return { gain, files, measured: await measureFile(job, main, progress(0.85, 1)) };
}

function attemptPath(job: Job, path: string): string {
  return join(job.scratch, basename(path));
}

async function keep(job: Job, wanted: readonly Rendition[]): Promise<void> {
  await Promise.all(wanted.map(({ path }) => rename(attemptPath(job, path), path)));
}

// Which gain and which ceiling bring a loudness to its target, from what was measured (pure).

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
function firstGain({ lufs, peakDb }: MeasuredLoudness, targetLufs: number): Gain {
  // Silence has no loudness to bring anywhere.
  if (lufs === null) return { gainDb: 0, ceilingDbtp: null };
  const gainDb = targetLufs - lufs;
  const needsLimiter = (peakDb ?? 0) + BETWEEN_SAMPLES_DB + gainDb > FIRST_CEILING_DBTP;
  return { gainDb, ceilingDbtp: needsLimiter ? FIRST_CEILING_DBTP : null };
}

/** @returns null when it is loud enough, or silent */
function gainForLoudness(gain: Gain, lufs: number | null, targetLufs: number): Gain | null {
  const missingLu = lufs === null ? 0 : targetLufs - lufs;
  return Math.abs(missingLu) <= TOLERANCE_LU ? null : { ...gain, gainDb: gain.gainDb + missingLu };
}

/** @returns null when the peaks are under the ceiling */
function gainForPeaks(gain: Gain, { peakDb }: MeasuredLoudness): Gain | null {
  const excessDb = excessOf(peakDb);
  if (excessDb <= 0) return null;
  const ceiling = (gain.ceilingDbtp ?? FIRST_CEILING_DBTP) - excessDb - 0.1;
  return { ...gain, ceilingDbtp: Math.max(LOWEST_CEILING_DBTP, ceiling) };
}

/** How far a measured file is from what it should be: first come the peaks over the ceiling, then the loudness. Negative: `a` is the better one. */
function compareMisses(a: MeasuredLoudness, b: MeasuredLoudness, targetLufs: number): number {
  return (
    Math.max(0, excessOf(a.peakDb)) - Math.max(0, excessOf(b.peakDb)) ||
    missOf(a.lufs, targetLufs) - missOf(b.lufs, targetLufs)
  );
}

/** LU; silence misses nothing. */
function missOf(lufs: number | null, targetLufs: number): number {
  return lufs === null ? 0 : Math.abs(lufs - targetLufs);
}

function excessOf(peakDb: number | null): number {
  return (peakDb ?? Number.NEGATIVE_INFINITY) - MAX_PEAK_DBTP;
}
