/**
 * Loudness normalisation (EBU R 128, ITU-R BS.1770): one constant gain, and a limiter for the peaks alone. Never
 * `loudnorm`: where the gain would lift a peak over the ceiling it falls back to a gain that follows the sound, and pumps.
 */
import { rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { branchFilters, filterGraph, type Gain } from './graph.ts';
import { type Job, runOnInput } from './input-run.ts';
import type { OutputPlan } from './plan.ts';
import type { ProgressReport } from './progress.ts';
import { demuxerOf, type RenderedFile, render } from './render.ts';
import type { Rendition } from './rendition.ts';
import { loudnessSummary, type MeasuredLoudness } from './statistics.ts';

export interface Loudness {
  /** Of the track as it goes into the encoder but for the gain. */
  readonly inputLufs: number;
  /** Of the finished file, decoded. */
  readonly outputLufs: number;
  readonly truePeakDbtp: number;
  readonly gainDb: number;
}

export interface Normalised {
  readonly files: RenderedFile[];
  readonly loudness: Loudness;
  readonly gain: Gain;
}

/** The ceiling that a finished file has to keep (EBU R 128 section 1: −1 dBTP). ebur128 rounds to 0.1 dB: one step of it is margin. */
const MAX_PEAK_DBTP = -1.1;

/** Lossy encoders move peaks; half a decibel is what MP3 at 192k needs. More is found out by measuring. */
const FIRST_CEILING_DBTP = -1.6;

/** As near as this is near enough; half of what is promised. */
const TOLERANCE_LU = 0.25;

const MAX_ATTEMPTS = 5;

/** `alimiter` takes no lower limit than −24 dB. */
const LOWEST_CEILING_DBTP = -20;

/** What silence measures as: ebur128's absolute gate, and a number that JSON can carry. */
const SILENCE_LUFS = -70;
const SILENCE_DBTP = -144;

/**
 * Encodes with the gain that the measured loudness asks for, measures the finished file, and encodes again while the
 * limiter took too much or the codec lifted a peak too high. Keeps what comes nearest to the target under the ceiling:
 * a target that peaks stand in the way of is missed rather than the ceiling broken.
 *
 * The source is decoded twice rather than kept as PCM in between: a decode is cheaper than writing and reading 1.4 GB for each hour.
 */
export async function normalise(
  job: Job,
  wanted: readonly Rendition[],
  targetLufs: number,
  report: ProgressReport,
  onNormalise: () => void,
): Promise<Normalised> {
  const [main] = wanted;
  if (main === undefined) throw new Error('nothing to normalise');
  const source = await measureTrack(job, main.plan, report.phase(0, 0.25));
  onNormalise();
  let gain = firstGain(source, targetLufs);
  let best: Attempt | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const start = 0.25 + 0.7 * (1 - 0.5 ** attempt);
    const span = 0.7 * 0.5 ** (attempt + 1);
    const tried = await tryGain(job, wanted, gain, report, start, span);
    if (best === undefined || isBetter(tried, best, targetLufs)) {
      best = tried;
      await keep(job, wanted);
    }
    const next = nextGain(gain, tried.measured, targetLufs);
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
      truePeakDbtp: best.measured.truePeakDbtp ?? SILENCE_DBTP,
      gainDb: Number(best.gain.gainDb.toFixed(2)),
    },
  };
}

interface Attempt {
  readonly gain: Gain;
  readonly files: RenderedFile[];
  readonly measured: MeasuredLoudness;
}

function firstGain({ lufs, truePeakDbtp }: MeasuredLoudness, targetLufs: number): Gain {
  // Silence has no loudness to bring anywhere.
  if (lufs === null) return { gainDb: 0, ceilingDbtp: null };
  const gainDb = targetLufs - lufs;
  const needsLimiter = (truePeakDbtp ?? 0) + gainDb > FIRST_CEILING_DBTP;
  return { gainDb, ceilingDbtp: needsLimiter ? FIRST_CEILING_DBTP : null };
}

/** null when the attempt is as good as it gets. */
function nextGain(gain: Gain, { lufs, truePeakDbtp }: MeasuredLoudness, targetLufs: number): Gain | null {
  const missingLu = lufs === null ? 0 : targetLufs - lufs;
  const excessDb = (truePeakDbtp ?? Number.NEGATIVE_INFINITY) - MAX_PEAK_DBTP;
  const isLoudEnough = Math.abs(missingLu) <= TOLERANCE_LU;
  if (isLoudEnough && excessDb <= 0) return null;
  const ceiling = gain.ceilingDbtp ?? FIRST_CEILING_DBTP;
  const lowered = excessDb > 0 ? ceiling - excessDb - 0.1 : ceiling;
  return {
    gainDb: gain.gainDb + (isLoudEnough ? 0 : missingLu),
    ceilingDbtp: Math.max(LOWEST_CEILING_DBTP, lowered),
  };
}

function isBetter(tried: Attempt, best: Attempt, targetLufs: number): boolean {
  const excess = ({ measured }: Attempt) => Math.max(0, (measured.truePeakDbtp ?? -144) - MAX_PEAK_DBTP);
  if (excess(tried) !== excess(best)) return excess(tried) < excess(best);
  const miss = ({ measured }: Attempt) => Math.abs((measured.lufs ?? targetLufs) - targetLufs);
  return miss(tried) < miss(best);
}

async function tryGain(
  job: Job,
  wanted: readonly Rendition[],
  gain: Gain,
  report: ProgressReport,
  start: number,
  span: number,
): Promise<Attempt> {
  const renditions = wanted.map(
    (wish): Rendition => ({ ...wish, mode: 'encode', path: attemptPath(job, wish.path), gain }),
  );
  const files = await render(job, renditions, report.phase(start, start + span * 0.8));
  const [main] = renditions;
  if (main === undefined) throw new Error('nothing to normalise');
  const measured = await measureFile(job, main, report.phase(start + span * 0.8, start + span));
  return { gain, files, measured };
}

function attemptPath(job: Job, path: string): string {
  return join(job.scratch, basename(path));
}

async function keep(job: Job, wanted: readonly Rendition[]): Promise<void> {
  await Promise.all(wanted.map(({ path }) => rename(attemptPath(job, path), path)));
}

const EBUR128 = 'ebur128=peak=true:framelog=verbose';

/** The track as the encoder would get it, channels mixed and rate converted: loudness depends on both. */
async function measureTrack(
  job: Job,
  plan: OutputPlan,
  onSeconds: (seconds: number) => void,
): Promise<MeasuredLoudness> {
  const graph = filterGraph(plan.track, plan.trim, [`${branchFilters(plan, null)},${EBUR128}`]);
  const { stderr } = await runOnInput(
    job,
    {
      inputs: [{ file: job.input, demuxer: job.probe.container.demuxer }],
      graph,
      outputs: [{ muxer: 'null', options: ['-map', '[out0]', '-t', String(job.maxAudioSeconds + 2)] }],
    },
    onSeconds,
  );
  return loudnessSummary(stderr);
}

async function measureFile(
  job: Job,
  { plan, path }: Rendition,
  onSeconds: (seconds: number) => void,
): Promise<MeasuredLoudness> {
  const { stderr } = await runOnInput(
    job,
    {
      inputs: [{ file: path, demuxer: demuxerOf(plan.format.muxer) }],
      outputs: [{ muxer: 'null', options: ['-map', '0:a:0', '-filter:a', EBUR128] }],
    },
    onSeconds,
  );
  return loudnessSummary(stderr);
}
