/**
 * Loudness normalisation (EBU R 128, ITU-R BS.1770): one constant gain, and a limiter for peaks.
 * Never `loudnorm`: if its gain would lift a peak over the ceiling, it varies the gain, and pumps.
 */
import { rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Gain } from '../graph.ts';
import type { Job } from '../input-run.ts';
import { type Heard, mayExceed, ofChannel, UNHEARD } from '../mixing.ts';
import { pcmBytesOf } from '../output-size.ts';
import { type Parallelism, renderWanted } from '../parallel/render.ts';
import type { RenderedFile } from '../render.ts';
import type { LevelledPcm, Rendition } from '../rendition.ts';
import type { loudnessSummary, progressReport } from '../tool-output.ts';
import { levelTrack, measureFile, measureTrack } from './measure.ts';

type ProgressReport = ReturnType<typeof progressReport>;

type MeasuredLoudness = ReturnType<typeof loudnessSummary>;

export interface Loudness {
  /** Of the encoder's input without the gain. */
  readonly inputLufs: number;
  /** Of the finished file, decoded. */
  readonly outputLufs: number;
  readonly truePeakDbtp: number;
  readonly gainDb: number;
}

interface Normalised {
  readonly files: RenderedFile[];
  /** The requested renditions as made: with the channels taken, and the gain. */
  readonly renditions: readonly Rendition[];
  readonly loudness: Loudness;
}

interface NormaliseOptions {
  readonly report: ProgressReport;
  /** Where idle cores come from; without it none are used. */
  readonly parallel: Parallelism | undefined;
  /** Called when the loudness is known and levelling begins. */
  readonly onNormalise: () => void;
}

/** Attempts to encode, and before each to find the gain that survives its limiter. */
const MAX_ENCODINGS = 5;
const MAX_LEVELLINGS = 4;

/** What silence measures as: ebur128's absolute gate, and a number that JSON can carry. */
const SILENCE_LUFS = -70;
const SILENCE_DBTP = -144;

/**
 * Measures, finds the gain, encodes, and measures the finished file. If a limiter is needed, levels
 * into PCM first, since a limiter lowers the loudness and trying a gain costs a quarter of an
 * encoding. If the codec lifts a peak over the ceiling, encodes again with a lower one. Keeps the
 * result nearest to the target: peaks may cause a missed target, never a broken ceiling
 * (docs/decisions/0013-loudness.md).
 */
export async function normalise(
  job: Job,
  asked: readonly Rendition[],
  targetLufs: number,
  { report, parallel, onNormalise }: NormaliseOptions,
): Promise<Normalised> {
  const { wanted, heard, source } = await measure(job, asked, report.phase(0, 0.15));
  const [main] = wanted;
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
      // The limiter's result is the most that is possible; the codec may have changed it.
      gainForLoudness(levelled.gain, tried.measured.lufs, levelled.lufs ?? targetLufs);
    if (next === null) break;
    gain = next;
  }
  if (best === undefined) throw new Error('nothing was normalised');
  const { gain: taken } = best;
  return {
    files: best.files.map((file, index) => ({
      ...file,
      path: wanted[index]?.path ?? file.path,
      warnings: heard[index]?.warnings ?? [],
    })),
    renditions: wanted.map((request, index) => ({ ...request, gain: gainOf(taken, request, index) })),
    loudness: {
      inputLufs: source.lufs ?? SILENCE_LUFS,
      outputLufs: best.measured.lufs ?? SILENCE_LUFS,
      truePeakDbtp: best.measured.peakDb ?? SILENCE_DBTP,
      gainDb: Number(best.gain.gainDb.toFixed(2)),
    },
  };
}

interface Measured {
  readonly wanted: readonly [Rendition, ...Rendition[]];
  readonly heard: readonly Heard[];
  readonly source: MeasuredLoudness;
}

/** Measures the mix, then again if one channel replaces it. */
async function measure(
  job: Job,
  asked: readonly Rendition[],
  onSeconds: (seconds: number) => void,
): Promise<Measured> {
  const [main, ...others] = asked;
  if (main === undefined) throw new Error('nothing to normalise');
  const plans = [main.plan, ...others.map(({ plan }) => plan)] as const;
  const { measured, heard } = await measureTrack(job, plans, onSeconds);
  const taken = (rendition: Rendition, nth: number): Rendition => {
    const { channel } = heard[nth] ?? UNHEARD;
    return channel === null ? rendition : { ...rendition, plan: ofChannel(rendition.plan, channel) };
  };
  const first = taken(main, 0);
  const wanted = [first, ...others.map((rendition, nth) => taken(rendition, nth + 1))] as const;
  if (first === main) return { wanted, heard, source: measured };
  const again = await measureTrack(job, [first.plan], onSeconds);
  return { wanted, heard, source: again.measured };
}

/** Each attempt gets half of the progress that is left. */
function partOf(report: ProgressReport, attempt: number): ProgressReport['phase'] {
  const span = 0.8 * 0.5 ** (attempt + 1);
  const start = 0.95 - 2 * span;
  return (from, to) => report.phase(start + span * from, start + span * to);
}

interface Levelled {
  readonly gain: Gain;
  /** The loudness of the encoder's input; null: not measured. */
  readonly lufs: number | null;
  /** null if the gain alone is enough, or the PCM would be larger than an output may be. */
  readonly pcm: LevelledPcm | null;
}

/** Finds the gain with which the limiter reaches the wanted loudness. */
async function level(
  job: Job,
  { plan }: Rendition,
  request: Gain,
  targetLufs: number,
  progress: ProgressReport['phase'],
): Promise<Levelled> {
  if (request.ceilingDbtp === null) return { gain: request, lufs: null, pcm: null };
  const fits = pcmBytesOf(plan, { ...job.probe, maxAudioSeconds: job.maxAudioSeconds }) < job.maxOutputBytes;
  const path = fits ? join(job.scratch, 'levelled.wav') : null;
  const tryOut = async (gain: Gain, from: number, to: number): Promise<Levelled> => ({
    gain,
    ...(await levelTrack(job, plan, gain, path, progress(from, to))),
  });
  let best = await tryOut(request, 0, 0.2);
  for (let nth = 2; nth <= MAX_LEVELLINGS; nth += 1) {
    const gain = gainForLoudness(best.gain, best.lufs, targetLufs);
    if (gain === null) break;
    const tried = await tryOut(gain, 0.4 - 0.4 * 0.5 ** (nth - 1), 0.4 - 0.4 * 0.5 ** nth);
    if (missOf(tried.lufs, targetLufs) >= missOf(best.lufs, targetLufs)) {
      // More gain overshot or added nothing: the file, if there is one, is written again as it was.
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
    (request, index): Rendition => ({
      ...request,
      mode: 'encode',
      path: attemptPath(job, request.path),
      gain: gainOf(gain, request, index),
      // A voice message has its own channels and rate, and is levelled while it is encoded.
      pcm: index === 0 ? pcm : null,
    }),
  );
  const files = await renderWanted(job, renditions, parallel, progress(0.4, 0.85));
  const [main] = renditions;
  if (main === undefined) throw new Error('nothing to normalise');
  return { gain, files, measured: await measureFile(job, main, progress(0.85, 1)) };
}

/** A voice message's mono mix has higher peaks than the mix that was measured. */
function gainOf(gain: Gain, { plan }: Rendition, index: number): Gain {
  return index > 0 && mayExceed(plan, false)
    ? { ...gain, ceilingDbtp: gain.ceilingDbtp ?? FIRST_CEILING_DBTP }
    : gain;
}

function attemptPath(job: Job, path: string): string {
  return join(job.scratch, basename(path));
}

async function keep(job: Job, wanted: readonly Rendition[]): Promise<void> {
  await Promise.all(wanted.map(({ path }) => rename(attemptPath(job, path), path)));
}

// The gain and ceiling that bring a measured loudness to its target (pure).

/** A finished file's ceiling (EBU R 128 section 1: −1 dBTP), less one step of ebur128, 0.1 dB. */
const MAX_PEAK_DBTP = -1.1;

/** Lossy encoders move peaks: MP3 at 192k needs half a decibel, measuring shows who needs more. */
const FIRST_CEILING_DBTP = -1.6;

/** Peaks between samples are rarely higher by more; measuring the finished file finds those. */
const BETWEEN_SAMPLES_DB = 1;

/** Near enough: half of the promised tolerance. */
const TOLERANCE_LU = 0.25;

/** `alimiter` takes no lower limit than −24 dB. */
const LOWEST_CEILING_DBTP = -20;

/** The gain by the source's loudness, with a limiter if its peaks would exceed the ceiling. */
function firstGain({ lufs, peakDb }: MeasuredLoudness, targetLufs: number): Gain {
  // Silence has no loudness to change.
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

/** Compares misses: peaks over the ceiling first, then the loudness. Negative: `a` is better. */
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
