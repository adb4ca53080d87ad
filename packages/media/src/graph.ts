/** The filter graph of an encode: from the chosen track to one branch for each output (pure). */
import {
  hearingChains,
  labelFilters,
  layoutFilters,
  layoutOf,
  mayExceed,
  mixFilters,
  sidesFilter,
} from './mixing.ts';
import type { OutputPlan } from './plan.ts';
import type { AudioTrack } from './probe.ts';
import { CLOCK_FILTER, continuousFilter, FILL_FILTER, gapMeter } from './timeline.ts';
import { partsOf } from './track-choice.ts';

/** One constant gain, and a limiter for the peaks that it would lift over the ceiling. */
export interface Gain {
  readonly gainDb: number;
  /** The limiter's ceiling for true peaks, dBTP; null: no limiter is needed. */
  readonly ceilingDbtp: number | null;
}

/** Counts samples from 0 again: unrounded, some are one early. Closes unfilled gaps. */
const RESTAMP = "asetpts='round(N/SR/TB)'";

/** Limiting at four times the rate catches peaks between samples; past 192 kHz there are none. */
const OVERSAMPLING = 4;
const MAX_LIMITER_RATE = 192_000;

/** A mix of many channels may exceed full scale: its encoder gets true peaks below −1 dBTP. */
const MIX_GAIN: Gain = { gainDb: 0, ceilingDbtp: -1.5 };

/** The encoder's unchanged input, for a measurement. */
export const AS_IT_IS: Gain = { gainDb: 0, ceilingDbtp: null };

type Planned = Pick<OutputPlan, 'formatName' | 'track' | 'trim' | 'timeline' | 'encode'>;

/** What one output makes of a track. */
export interface Branch {
  readonly plan: Planned;
  /** null: none, except a limiter for a mix that needs one. */
  readonly gain: Gain | null;
  /** Filters after all others. */
  readonly last: readonly string[];
}

/** Audio that a command decodes from its second input, instead of the source's. */
export interface UniformStreams {
  /** Indexes in the source of the tracks that it holds, in its order. */
  readonly streams: readonly number[];
}

interface Decoded {
  readonly uniform?: UniformStreams;
}

/** A track's name in a command that decodes it: the input's number and the stream's index. */
export function decodedFrom(
  { uniform }: Decoded,
  { streamIndex }: Pick<OutputPlan['track'], 'streamIndex'>,
): string {
  return uniform === undefined ? `0:${streamIndex}` : `1:${uniform.streams.indexOf(streamIndex)}`;
}

/** Each output's clock, counted from 0: outputs of the same part of the same track share one. */
export function clockNumbers(plans: readonly Pick<OutputPlan, 'track' | 'trim'>[]): number[] {
  const keys = plans.map(({ track, trim }) =>
    [track.streamIndex, trim?.startSeconds, trim?.endSeconds].join(' '),
  );
  const clocks = [...new Set(keys)];
  return keys.map((key) => clocks.indexOf(key));
}

/**
 * Each track, decoded once, on the source's clock; each branch cuts it and fills or closes gaps.
 * @param heard plans of the branches' tracks and parts that are measured: {@link hearingChains}
 * @returns a graph for each track, since ffmpeg 7 aborts if one of a graph's inputs ends that has
 * nothing to do with the others. Together they have an output pad `[out0]`, `[out1]` … for each
 * branch.
 */
export function filterGraphs(
  decoded: Decoded,
  branches: readonly Branch[],
  heard: readonly Planned[] = [],
): string[] {
  const clocks = clockNumbers([...branches.map(({ plan }) => plan), ...heard]);
  const isUniform = decoded.uniform !== undefined;
  const legs = branches.map((branch, index) => {
    const { timeline, trim } = branch.plan;
    const cut = timeline === 'source' ? filledFilters(trim) : trimFilters(trim);
    const filters = [...cut, RESTAMP, ...branchFilters(branch, isUniform)];
    return { index, leg: filters.join(',') };
  });
  return tracksOf(branches.map(({ plan }) => plan)).map((track) => {
    const chains: string[] = [];
    const ofTrack = legs.filter(({ index }) => branches[index]?.plan.track.streamIndex === track.streamIndex);
    const numbers = [...new Set(ofTrack.map(({ index }) => clocks[index] ?? 0))];
    const labels = isUniform ? [] : labelFilters(track);
    const starts = ofTrack.map(({ index }) => branches[index]?.plan.trim?.startSeconds ?? 0);
    const trunk = [...labels, ...continuousFilter(track), CLOCK_FILTER, ...startFilter(Math.min(...starts))];
    const sources = numbers.map((number) => `[clock${number}]`);
    chains.push(
      `[${decodedFrom(decoded, track)}]${trunk.join(',')},asplit=${sources.length}${sources.join('')}`,
    );
    for (const number of numbers) {
      const ofClock = ofTrack.filter(({ index }) => clocks[index] === number);
      const trim = branches[ofClock[0]?.index ?? 0]?.plan.trim ?? null;
      const heardOfClock = heard.filter((_, place) => clocks[branches.length + place] === number);
      const ears = heardOfClock.length === 0 ? [] : [`[heard${number}]`];
      const pads = [...ofClock.map(({ index }) => `[in${index}]`), ...ears];
      const clip = [...startFilter(trim?.startSeconds ?? 0), gapMeter(trim, number), `asplit=${pads.length}`];
      chains.push(`[clock${number}]${clip.join(',')}${pads.join('')}`);
      chains.push(...ofClock.map(({ index, leg }) => `[in${index}]${leg}[out${index}]`));
      for (const ear of ears) chains.push(...hearingChains(ear, number, trimFilters(trim), heardOfClock));
    }
    return chains.join(';');
  });
}

type Sound = Pick<OutputPlan, 'track' | 'encode'>;

/** Each track that the plans use, once; a mix is one. */
function tracksOf(plans: readonly Pick<OutputPlan, 'track'>[]): AudioTrack[] {
  const tracks = new Map(plans.map(({ track }) => [track.streamIndex, track]));
  return [...tracks.values()];
}

/** Each track of the file that the plans use, once, also in a mix. */
export function sourcesOf(plans: readonly Pick<OutputPlan, 'track'>[]): AudioTrack[] {
  return tracksOf(plans.flatMap((plan) => partsOf(plan.track)).map((track) => ({ track })));
}

/**
 * Each track of the file at its own rate, with the most channels that a plan takes, mixed down
 * without a limiter. Its filters keep no state, so they may be rebuilt at any frame. Earlier audio
 * moves to second 0, as in {@link CLOCK_FILTER}.
 * @returns a graph for each track, with output pads in the order of {@link sourcesOf}
 */
export function uniformGraphs(plans: readonly Sound[], untilSeconds: number): string[] {
  // The first frame behind that end too: it shows how far a gap before it reaches.
  const until = `aselect='isnan(prev_pts)+lt(prev_pts*TB,${untilSeconds})'`;
  return sourcesOf(plans).map(
    (track, nth) => `[0:${track.streamIndex}]${until},${uniformFilters(plans, track)}[out${nth}]`,
  );
}

function uniformFilters(plans: readonly Sound[], track: AudioTrack): string {
  const layout = layoutOf(channelsTaken(plans, track));
  return `asetpts='max(PTS,0)',aresample=${track.sampleRate},aformat=sample_fmts=flt:channel_layouts=${layout}`;
}

/**
 * The tracks of a mix, put on one clock with silence where they have none, and added up at their
 * own levels without a limiter. It begins where the first of them does.
 * @returns a graph with the output pad `[out0]`
 */
export function mixGraph(
  decoded: Decoded,
  mix: AudioTrack,
  plans: readonly Sound[],
  untilSeconds: number,
): string {
  const parts = partsOf(mix);
  const chains = parts.map((part, nth) => {
    const labels = decoded.uniform === undefined ? labelFilters(part) : [];
    const clocked = [...labels, CLOCK_FILTER, FILL_FILTER, ...sidesFilter(part, mix)];
    return `[${decodedFrom(decoded, part)}]${[...clocked, uniformFilters(plans, mix)].join(',')}[part${nth}]`;
  });
  const pads = parts.map((_, nth) => `[part${nth}]`).join('');
  const sum = `amix=inputs=${parts.length}:normalize=0:duration=longest`;
  return [...chains, `${pads}${sum},atrim=start=${mix.startSeconds}:end=${untilSeconds}[out0]`].join(';');
}

/**
 * The most channels that a plan takes of the track, also in a mix. Of two, both: their mean is made
 * of samples.
 */
export function channelsTaken(plans: readonly Sound[], { streamIndex, channels }: AudioTrack): number {
  const ofTrack = plans.filter(({ track }) =>
    [track, ...partsOf(track)].some((part) => part.streamIndex === streamIndex),
  );
  return Math.max(channels === 2 ? 2 : 1, ...ofTrack.map(({ encode }) => encode.channels));
}

function trimFilters(trim: OutputPlan['trim']): string[] {
  if (trim === null) return [];
  const end = trim.endSeconds === null ? '' : `:end=${trim.endSeconds}`;
  return [`atrim=start=${trim.startSeconds}${end}`];
}

/** Early, so that neither later filters nor a gap cost anything before a clip begins. */
function startFilter(startSeconds: number): string[] {
  return startSeconds === 0 ? [] : trimFilters({ startSeconds, endSeconds: null });
}

/** After {@link startFilter}; at the end last, since only the next samples show a gap. */
function filledFilters(trim: OutputPlan['trim']): string[] {
  if (trim === null) return [FILL_FILTER];
  const { startSeconds, endSeconds } = trim;
  const fromZero = startSeconds === 0 ? [] : [`asetpts='PTS-round(${startSeconds}/TB)'`];
  const length = { startSeconds: 0, endSeconds: endSeconds && endSeconds - startSeconds };
  return [...fromZero, FILL_FILTER, ...trimFilters(length)];
}

/** A stretch of the encoder's input: samples of one channel; without an end, to the end. */
interface Stretch {
  readonly startSample: number;
  readonly endSample: number | null;
}

/**
 * Cuts at the encoder's own rate, so that resampler and decoder have the same past as without the
 * cut: filter state, noise.
 */
export function stretchFilters({ startSample, endSample }: Stretch): string {
  const end = endSample === null ? '' : `:end_sample=${endSample}`;
  return `atrim=start_sample=${startSample}${end},${RESTAMP}`;
}

/**
 * Silence before the first sample, at times below 0, which the MP4 muxer hides in the edit list.
 * Decoders output the last packet whole: with the right lead that packet is full.
 */
export function leadFilter(samples: number): string {
  return `aresample=async=1:first_pts=${-samples}`;
}

/** The filters of one output: channels and rate, then the gain. */
function branchFilters({ plan, gain, last }: Branch, isUniform: boolean): string[] {
  const { formatName, track, encode } = plan;
  if (formatName === 'transcript' && track.channels <= 2 && !isUniform) {
    return [...convertForTranscriber(plan), ...last];
  }
  const taken = gain ?? (mayExceed(plan, isUniform) ? MIX_GAIN : AS_IT_IS);
  const rate = `aresample=${encode.sampleRate}`;
  const isShallower = encode.bitDepth === 16 && (track.bitDepth ?? 16) > 16;
  const final = isShallower ? `${rate}:out_sample_fmt=s16:dither_method=triangular` : rate;
  const level = gainFilters(taken, encode.sampleRate);
  const layout = layoutFilters(plan, isUniform);
  const isFloat = level.length > 0 || mayExceed(plan, isUniform);
  const resample = isFloat ? [rate, ...layout, ...level] : [final, ...layout];
  return [...mixFilters(plan), ...resample, ...(level.length > 0 ? [final] : []), ...last];
}

/** Samples of one channel. */
const AT_ONCE = 16_384;

/**
 * Takes less than half the time of the other filters (0.2 s, not 0.5, for ten minutes): many
 * samples at once, resampled as 16-bit mono. No recogniser detects its noise at −91 dB. One or
 * two channels cannot exceed full scale.
 */
function convertForTranscriber(plan: Sound): string[] {
  return [
    `asetnsamples=n=${AT_ONCE}:p=0`,
    ...mixFilters(plan),
    'aformat=sample_fmts=s16:channel_layouts=mono',
    `aresample=${plan.encode.sampleRate}`,
  ];
}

function gainFilters({ gainDb, ceilingDbtp }: Gain, sampleRate: number): string[] {
  const volume = gainDb === 0 ? [] : [`volume=${gainDb.toFixed(2)}dB:precision=double`];
  if (ceilingDbtp === null) return volume;
  const limiterRate = Math.max(sampleRate, Math.min(MAX_LIMITER_RATE, sampleRate * OVERSAMPLING));
  const limit = 10 ** (ceilingDbtp / 20);
  return [
    ...volume,
    `aresample=${limiterRate}`,
    // level=0: no make-up gain, which would undo ours. latency=1: removes the look-ahead's delay.
    `alimiter=limit=${limit.toFixed(5)}:attack=5:release=50:level=0:latency=1`,
  ];
}
