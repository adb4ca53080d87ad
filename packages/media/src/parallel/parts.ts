/** How an output is cut into parts to be encoded on several cores (pure). */
import type { OutputPlan } from '../plan.ts';

/** A part of an output: samples of one channel at the encoder's rate, from the output's start. */
export interface Part {
  readonly startSample: number;
  /** null: to the end. */
  readonly endSample: number | null;
}

interface Splicing {
  readonly frameSamples: number;
  /** The encoder's frame lengths repeat after so many frames: a part begins at a multiple. */
  readonly cycleFrames: number;
  readonly rule: SpliceRule;
}

/** At 44.1 kHz frames get an extra byte by a pattern of at most 49 frames, at every bitrate. */
const MP3_CYCLE_FRAMES = 49;

/**
 * Bit reservoir and filter bank make an MP3 frame depend on earlier ones. A decoder needs two
 * frames to reach the same state; main data of nine at most begins before the splice (32 kbit/s, 48
 * kHz).
 */
const MP3_RULE: SpliceRule = { before: 4, after: 12 };

/** RFC 7845 section 4.6 wants 80 ms; this is 500, as each packet halves a decoder's difference. */
const OPUS_RULE: SpliceRule = { before: 25, after: 0 };

/** Below, libopus may use its other codec (SILK), whose packets do not become the same again. */
const OPUS_MIN_KBPS = 80;

/** Null: never spliced, as lossless formats and AAC (docs/decisions/0012-parallel-encoding.md). */
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

/** The shortest part worth its own run: shorter ones spend too much of it on the overlap. */
const MIN_PART_SECONDS = 150;

/**
 * How long two parts overlap. Two encoders that begin at different positions agree after seconds,
 * LAME after 17 s in the worst of 120 cases; if they do not, all work is redone.
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

/** Cost of decoding, relative to encoding: 0.45 s of 7.5 for ten minutes of AAC to MP3. */
const DECODE_SHARE = 0.06;

/** The same of what the last part's run also makes: a transcript's audio, 0.2 s of those 7.5. */
const BESIDE_SHARE = 0.03;

/** The shortest of many parts, relative to the first: longer than its overlap. */
const LEAST_WEIGHT = 0.5;

/**
 * Parts that take about the same time, each overlapping the next. Later parts are shorter, since
 * each run also decodes what precedes its part.
 * @param beside how many light outputs the last part's run also makes
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

// Where one run's packets may be followed by the next run's (pure).

/** How many packets on each side of a splice have to be the same in both runs. */
interface SpliceRule {
  readonly before: number;
  readonly after: number;
}

/**
 * The latest splice that keeps to the rule, to give the second encoder most time to converge.
 * @param earlier content of the earlier run's packets, from the later run's start on; null: unknown
 * @param later the same of the later run
 * @returns how many packets of the earlier run come first; undefined if the runs never agree
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
