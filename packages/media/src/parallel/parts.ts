/** Into which parts an output is cut to be encoded on several cores (pure). */
import type { OutputPlan } from '../plan.ts';

/** A part of an output: samples of one channel at the rate of the encoder, counted from the output's beginning. */
export interface Part {
  readonly startSample: number;
  /** null: to the end. */
  readonly endSample: number | null;
}

/** What is known of a codec whose packets can be spliced. */
interface Splicing {
  readonly frameSamples: number;
  /** Frames after which the encoder's pattern of frame lengths repeats: a part begins at a multiple of it. */
  readonly cycleFrames: number;
  readonly rule: SpliceRule;
}

/** At 44.1 kHz a frame has no whole number of bytes: one more is put in by a pattern that repeats after 49 frames at the most, at every bitrate. */
const MP3_CYCLE_FRAMES = 49;

/**
 * The bit reservoir and the filter bank make a frame of MP3 depend on what came before it. A decoder needs two frames to get into the same
 * state, and the main data of at most nine frames (32 kbit/s at 48 kHz) begins before the splice.
 */
const MP3_RULE: SpliceRule = { before: 4, after: 12 };

/** RFC 7845 section 4.6 wants 80 ms for a decoder to converge; this is half a second, since each packet halves what is left of a difference. */
const OPUS_RULE: SpliceRule = { before: 25, after: 0 };

/** Below, libopus may choose its other codec (SILK), whose packets do not become the same again. */
const OPUS_MIN_KBPS = 80;

/** How its outputs are spliced; null for an output that is not. Lossless formats and AAC never are: see docs/decisions/0012-parallel-encoding.md. */
export function splicingOf({ formatName, encode }: OutputPlan): Splicing | null {
  if (formatName === 'mp3') {
    const frameSamples = encode.sampleRate >= 32_000 ? 1152 : 576;
    return { frameSamples, cycleFrames: MP3_CYCLE_FRAMES, rule: MP3_RULE };
  }
  if (formatName === 'opus' && (encode.bitrateKbps ?? 0) >= OPUS_MIN_KBPS) {
    return { frameSamples: 960, cycleFrames: 1, rule: OPUS_RULE };
  }
  return null;
}

/** The shortest part that is worth a run of its own: shorter ones spend too much of it on the overlap. */
const MIN_PART_SECONDS = 150;

/**
 * How long two parts overlap. Two encoders that begin at different places agree after some seconds, LAME after 17 s in the worst of
 * 120 cases; where they do not, all of the work is done again.
 */
const OVERLAP_SECONDS = 30;

interface PartLengths {
  readonly minPartSeconds: number;
  readonly overlapSeconds: number;
}

export const PART_LENGTHS: PartLengths = {
  minPartSeconds: MIN_PART_SECONDS,
  overlapSeconds: OVERLAP_SECONDS,
};

/** How many parts an output is long enough for; 1: it is encoded in one. */
export function mostParts(plan: OutputPlan, { minPartSeconds }: PartLengths = PART_LENGTHS): number {
  const { copy, expectedSeconds } = plan;
  if (copy !== null || expectedSeconds === null || splicingOf(plan) === null) return 1;
  return Math.max(1, Math.floor(expectedSeconds / minPartSeconds));
}

/** What a second of the source takes to be read and decoded, of what it takes to be encoded: 0.45 s of 7.5 for ten minutes of AAC to MP3. */
const DECODE_SHARE = 0.06;

/** The same of what the last part's run makes besides: a transcript's sound, 0.2 s of those 7.5. */
const BESIDE_SHARE = 0.03;

/** The shortest of many parts against the first: it stays longer than what it shares with the next. */
const LEAST_WEIGHT = 0.5;

/**
 * Parts that take about the same time, each overlapping the next. Each one's run decodes what lies before it too, so that they become shorter.
 * @param beside how many light outputs the last part's run makes besides
 */
export function cut(
  { encode, expectedSeconds }: OutputPlan,
  { frameSamples, cycleFrames }: Splicing,
  count: number,
  { overlapSeconds }: PartLengths,
  beside = 0,
): Part[] {
  const cycle = frameSamples * cycleFrames;
  const overlap = Math.round(overlapSeconds * encode.sampleRate);
  const weights = Array.from({ length: count }, (_, part) => {
    const besides = part === count - 1 ? beside * BESIDE_SHARE * count : 0;
    return Math.max(LEAST_WEIGHT, (1 + DECODE_SHARE) ** -part - besides);
  });
  const stride = ((expectedSeconds ?? 0) * encode.sampleRate - overlap) / sum(weights);
  const startOf = (part: number) => Math.floor((stride * sum(weights.slice(0, part))) / cycle) * cycle;
  return Array.from({ length: count }, (_, part) => ({
    startSample: startOf(part),
    endSample: part === count - 1 ? null : startOf(part + 1) + overlap,
  }));
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

// Where one run's packets may be followed by those of the next (pure).

/** How many packets on each side of a splice have to be the same in both runs. */
interface SpliceRule {
  readonly before: number;
  readonly after: number;
}

/**
 * The latest place that keeps to the rule: the later, the longer the second encoder has forgotten that it began in the middle.
 * @param earlier what the packets of the earlier run say, from the place on at which the later run begins; null: cannot be told
 * @param later the same of the later run
 * @returns how many packets of the earlier run come before the splice; undefined where the runs never agree
 */
export function findSplice(
  earlier: readonly (Buffer | null)[],
  later: readonly (Buffer | null)[],
  { before, after }: SpliceRule,
): number | undefined {
  let run = 0;
  for (let at = Math.min(earlier.length, later.length) - 1; at >= 0; at -= 1) {
    const [one, other] = [earlier[at], later[at]];
    run = one && other && one.equals(other) ? run + 1 : 0;
    if (run === before + after) return at + before;
  }
  return undefined;
}

/** The parts of an encode do not make one file; a single pass does. */
export class Unjoinable extends Error {
  override readonly name = 'Unjoinable';
}
