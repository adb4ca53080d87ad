/** The filter graph of an encode: from the chosen track to one branch for each output (pure). */
import type { EncodePlan, OutputPlan, Trim } from './plan.ts';

/** One constant gain, and a limiter for the peaks that it would lift over the ceiling. */
export interface Gain {
  readonly gainDb: number;
  /** What the limiter keeps true peaks under, dBTP; null: no limiter is needed. */
  readonly ceilingDbtp: number | null;
}

/** Samples are counted anew from 0: positions are those of the audio itself, whatever the container's gaps and offsets. */
const RESTAMP = 'asetpts=N/SR/TB';

/** Limiting at four times the rate catches the peaks between samples; past 192 kHz there are none to catch. */
const OVERSAMPLING = 4;
const MAX_LIMITER_RATE = 192_000;

/** @returns a graph with an output pad `[out0]`, `[out1]` … for each branch. */
export function filterGraph(
  track: { streamIndex: number },
  trim: Trim | null,
  branches: readonly string[],
): string {
  const trunk = `[0:${track.streamIndex}]${[RESTAMP, ...trimFilters(trim)].join(',')}`;
  if (branches.length === 1) return `${trunk},${branches[0]}[out0]`;
  const pads = branches.map((_, index) => `[in${index}]`).join('');
  const legs = branches.map((filters, index) => `[in${index}]${filters}[out${index}]`);
  return [`${trunk},asplit=${branches.length}${pads}`, ...legs].join(';');
}

function trimFilters(trim: Trim | null): string[] {
  if (trim === null) return [];
  const end = trim.endSeconds === null ? '' : `:end=${trim.endSeconds}`;
  return [`atrim=start=${trim.startSeconds}${end}`, RESTAMP];
}

/** A stretch of what goes into the encoder: samples of one channel; without an end, to the end. */
export interface Stretch {
  readonly startSample: number;
  readonly endSample: number | null;
}

/**
 * Cuts where the encoder's own rate is reached, so that what comes before has the same past as without the cut: a resampler's filter, a
 * decoder's noise.
 */
export function stretchFilters({ startSample, endSample }: Stretch): string {
  const end = endSample === null ? '' : `:end_sample=${endSample}`;
  return `atrim=start_sample=${startSample}${end},${RESTAMP}`;
}

/** The filters of one output: channels and rate, then the gain. */
export function branchFilters({ track, encode }: OutputPlan, gain: Gain | null): string {
  return [convert(track, encode), ...(gain === null ? [] : gainFilters(gain, encode.sampleRate))].join(',');
}

function convert(track: OutputPlan['track'], encode: EncodePlan): string {
  const isMix = encode.channels !== track.channels;
  const options = [String(encode.sampleRate)];
  // Without the limit a mix in floating point may exceed full scale, which the encoder would clip.
  if (isMix) options.push('rematrix_maxval=1.0');
  if (encode.bitDepth === 16 && (track.bitDepth ?? 16) > 16) {
    options.push('out_sample_fmt=s16', 'dither_method=triangular');
  }
  const resample = `aresample=${options.join(':')}`;
  // aresample mixes to what the filter after it takes.
  return isMix
    ? `${resample},aformat=channel_layouts=${encode.channels === 1 ? 'mono' : 'stereo'}`
    : resample;
}

function gainFilters({ gainDb, ceilingDbtp }: Gain, sampleRate: number): string[] {
  const volume = `volume=${gainDb.toFixed(2)}dB:precision=double`;
  if (ceilingDbtp === null) return [volume];
  const limiterRate = Math.max(sampleRate, Math.min(MAX_LIMITER_RATE, sampleRate * OVERSAMPLING));
  const limit = 10 ** (ceilingDbtp / 20);
  return [
    volume,
    `aresample=${limiterRate}`,
    // level=0: no make-up gain, which would undo the constant one. latency=1: the look-ahead is taken out again.
    `alimiter=limit=${limit.toFixed(5)}:attack=5:release=50:level=0:latency=1`,
    `aresample=${sampleRate}`,
  ];
}
