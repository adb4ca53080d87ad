/**
 * One normal form before every encoder (pure): labels that encoders know, the mix to an output's
 * channels, and what the samples say of it (decisions A3, "Mixing down").
 */
import type { OutputPlan } from './plan.ts';
import type { AudioTrack } from './probe.ts';

type Labels = Pick<AudioTrack, 'channels' | 'layout'>;
type Sound = Pick<OutputPlan, 'track' | 'encode'>;

/** The most channels for which ffmpeg has a default layout of any number. */
const MAX_DEFAULT_CHANNELS = 8;

/** ffmpeg's mix needs a front speaker and both of each pair (swresample, `sane_layout`). */
const FRONT = ['FL', 'FR', 'FC'];
const PAIRS = [
  ['FL', 'FR'],
  ['SL', 'SR'],
  ['BL', 'BR'],
  ['FLC', 'FRC'],
];

/** ffmpeg's name; for many channels its usual order of them. */
export function layoutOf(channels: number): string {
  return { 1: 'mono', 2: 'stereo' }[channels] ?? `${channels}c`;
}

/** Names channels by their place where encoders or ffmpeg's mix would refuse their labels. */
export function labelFilters(track: Labels): string[] {
  const { channels } = track;
  return hasNormalLabels(track) || channels > MAX_DEFAULT_CHANNELS
    ? []
    : [pick(Array.from({ length: channels }, (_, place) => place))];
}

function hasNormalLabels({ channels, layout }: Labels): boolean {
  return channels <= 2 ? layout === layoutOf(channels) : isMixable(layout);
}

function isMixable(layout: string | null): boolean {
  if (layout === null) return false;
  const labels = layout.split('+');
  // All layouts that have a name of their own can be mixed.
  if (labels.length === 1) return true;
  const count = (wanted: readonly string[]) => wanted.filter((label) => labels.includes(label)).length;
  return !layout.includes('@') && count(FRONT) > 0 && PAIRS.every((pair) => count(pair) !== 1);
}

/** The layout of an output; null: of so many channels there is none. */
function layoutTaken({ track, encode: { channels } }: Sound): string | null {
  if (channels <= 2) return layoutOf(channels);
  if (hasNormalLabels(track)) return track.layout;
  return channels > MAX_DEFAULT_CHANNELS ? null : layoutOf(channels);
}

/** Channels by their places. `pan` would mix them by their labels first, and lose an LFE. */
function pick(places: readonly number[]): string {
  return `channelmap=map=${places.join('|')}:channel_layout=${layoutOf(places.length)}`;
}

/** Each channel of a layout the same mix of channels by their places. */
function panTo(channels: number, mix: string): string {
  const each = Array.from({ length: channels }, (_, place) => `c${place}=${mix}`);
  return [`pan=${layoutOf(channels)}`, ...each].join('|');
}

/** One channel on both sides at its own level: ffmpeg's mix would lower it by 3 dB. */
export function sidesFilter(from: Labels, to: Labels): string[] {
  return from.channels === 1 && to.channels === 2 ? [panTo(2, 'c0')] : [];
}

const FLOAT = 'sample_fmts=fltp';
const MEAN = '0.5*c0+0.5*c1';

/** Whether it is the mean of two channels, unless their samples say otherwise: {@link heardOf}. */
function isMeanOfTwo({ track, encode }: Sound): boolean {
  return track.channels === 2 && encode.channels === 1 && encode.channel === null;
}

/** The filters before the resampler. */
export function mixFilters({ track, encode }: Sound): string[] {
  const { channels, channel } = encode;
  if (channel !== null) return [pick([channel])];
  if (isMeanOfTwo({ track, encode })) return [`aformat=${FLOAT}`, panTo(1, MEAN)];
  if (channels < track.channels && !hasNormalLabels(track) && track.channels > MAX_DEFAULT_CHANNELS) {
    // Nobody knows where these speakers are: each output channel is the mean of all.
    const all = Array.from(
      { length: track.channels },
      (_, place) => `${(1 / track.channels).toFixed(6)}*c${place}`,
    );
    return [`aformat=${FLOAT}`, panTo(channels, all.join('+'))];
  }
  return [];
}

/**
 * The format after the resampler, which mixes by the matrix of ITU-R BS.775. In floating point,
 * ffmpeg does not scale that matrix down, so dialogue keeps its level.
 * @param isUniform whether the audio may have other channels than the track
 */
export function layoutFilters(sound: Sound, isUniform: boolean): string[] {
  const layout = layoutTaken(sound);
  const formats = [
    ...(mayExceed(sound, isUniform) ? [FLOAT] : []),
    ...(layout === null ? [] : [`channel_layouts=${layout}`]),
  ];
  return formats.length === 0 ? [] : [`aformat=${formats.join(':')}`];
}

/** A mean cannot exceed its channels; a matrix can, by 10 dB. */
export function mayExceed({ track, encode }: Sound, isUniform: boolean): boolean {
  return isUniform || (encode.channel === null && track.channels > 2 && encode.channels < track.channels);
}

// What the samples say. ffmpeg's volumedetect takes a tenth of the time of its astats; its 16 bits
// are enough, because what they round to 0 is inaudible.

/** Below, an output is silent, dBFS. */
const SILENT_DB = -60;
/** A channel is silent if the other one is so much louder. */
const ONE_SIDED_DB = 60;
/** Channels are out of phase if their mean is so much quieter. */
const CANCELLED_DB = 20;
/** What volumedetect says where all samples are 0. */
const FLOOR_DB = -91;

/** About an output that completed (decisions A4). */
export type SoundWarning = 'SILENT' | 'ONE_SIDED' | 'CANCELLED_OUT';

export interface Heard {
  readonly warnings: readonly SoundWarning[];
  /** The channel to take instead of the mean; null: the output is right. */
  readonly channel: number | null;
}

/** The output of one channel of its track instead of the mean. */
export function ofChannel(plan: OutputPlan, channel: number): OutputPlan {
  return { ...plan, encode: { ...plan.encode, channel } };
}

export const UNHEARD: Heard = { warnings: [], channel: null };

/**
 * Measures a stretch of a track, and ends it.
 * @param clock its number in the graph
 * @param before the filters that cut the stretch
 * @param plans for files from this stretch
 */
export function hearingChains(
  pad: string,
  clock: number,
  before: readonly string[],
  plans: readonly Sound[],
): string[] {
  const meter = (name: string) => `volumedetect@${name}${clock},anullsink`;
  if (!plans.some(isMeanOfTwo)) return [`${pad}${[...before, meter('all')].join(',')}`];
  const mixes = { left: pick([0]), right: pick([1]), mean: panTo(1, MEAN) };
  const pads = Object.keys(mixes).map((name) => `[${name}${clock}]`);
  return [
    `${pad}${[...before, 'asplit=3'].join(',')}${pads.join('')}`,
    ...Object.entries(mixes).map(([name, mix]) => `[${name}${clock}]${mix},${meter(name)}`),
  ];
}

/** Measures a stream's peak for {@link hasSound}. */
export function peakFilter(number: number): string {
  return `volumedetect@all${number}`;
}

/** undefined: nothing of it was decoded. */
export function hasSound(stderr: string, number: number): boolean | undefined {
  const peak = levelsIn(stderr, number).get('max all');
  return peak === undefined ? undefined : peak >= SILENT_DB;
}

const LEVEL = /^\[volumedetect@([a-z]+)(\d+) @ \w+\] (mean|max)_volume: (\S+) dB$/gm;

function levelsIn(stderr: string, clock: number): Map<string, number> {
  return new Map(
    [...stderr.matchAll(LEVEL)]
      .filter(([, , number]) => Number(number) === clock)
      .map(([, name, , kind, db]) => [
        `${kind} ${name}`,
        Number(db) <= FLOOR_DB ? Number.NEGATIVE_INFINITY : Number(db),
      ]),
  );
}

/** What a run's log says of an output. */
export function heardOf(sound: Sound, stderr: string, clock: number): Heard {
  const levels = levelsIn(stderr, clock);
  const peaks = ['all', 'left', 'right'].flatMap((name) => levels.get(`max ${name}`) ?? []);
  // The output has no levels for a part that the track does not have.
  if (peaks.length === 0) return UNHEARD;
  const silent: SoundWarning[] = Math.max(...peaks) < SILENT_DB ? ['SILENT'] : [];
  const [left, right, mean] = ['left', 'right', 'mean'].map((name) => levels.get(`mean ${name}`));
  if (!isMeanOfTwo(sound) || left === undefined || right === undefined || mean === undefined)
    return { warnings: silent, channel: null };
  const louder = Math.max(left, right);
  if (louder === Number.NEGATIVE_INFINITY) return { warnings: silent, channel: null };
  if (louder - Math.min(left, right) >= ONE_SIDED_DB)
    return { warnings: [...silent, 'ONE_SIDED'], channel: left > right ? 0 : 1 };
  const both = 10 * Math.log10((10 ** (left / 10) + 10 ** (right / 10)) / 2);
  if (both - mean > CANCELLED_DB) return { warnings: [...silent, 'CANCELLED_OUT'], channel: 0 };
  return { warnings: silent, channel: null };
}
