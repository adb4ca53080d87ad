/** Estimates from a plan how much disk space making an output may take. */
import { channelsTaken } from './graph.ts';
import { mostParts } from './parallel/parts.ts';
import type { OutputPlan, RunChoice } from './plan.ts';
import type { AudioTrack, Probe } from './probe.ts';

const MIB = 1024 * 1024;

/** Variable bitrates exceed their nominal one; containers and tags add to it. */
const MARGIN = 1.2;
const TAGS_BYTES = MIB;

/** A cover is copied into the tags. */
const COVER_BYTES = 8 * MIB;

/** If a track has no bitrate: more than any lossy codec makes; and PCM in samples of 64 bits. */
const LOSSY_BYTES_PER_SECOND = 128 * 1024;
const WIDEST_SAMPLE_BYTES = 8;

/** 24 bits: a limiter's output is below full scale, so floating point would gain nothing. */
const LEVELLED_SAMPLE_BYTES = 3;

/** Parts of an output, which overlap by a fifth at most, and the file made of them. */
const FILES_IN_PARTS = 2.2;

/** ffmpeg's output and the voice note that is made of it. */
const FILES_OF_VOICE = 2;

/** Two numbers of at most four characters, and a comma after each. */
const PIXEL_BYTES = 10;

/** Of a source without a declared duration, such as raw AAC: hardly one has fewer. */
const FEWEST_BYTES_PER_SECOND = 4000;

interface Source extends Pick<Probe, 'sizeBytes' | 'cover'> {
  /** Longest audio that is accepted, seconds. */
  readonly maxAudioSeconds: number;
  /** Whether idle cores may be used for it; default not. */
  readonly mayUseParts?: boolean;
}

/**
 * The most bytes that a plan has on disk at a time, temporary files included. An estimate with a
 * margin: a source longer than its container says exceeds it.
 */
export function roomFor(plan: OutputPlan, source: Source): number {
  const bytes = Math.max(encodedBytes(plan, source), copiedBytes(plan, source)) * MARGIN;
  const keepsCover = source.cover !== null && plan.preserveMetadata && plan.format.keeps.cover;
  const cover = keepsCover ? Math.min(COVER_BYTES, source.sizeBytes) : 0;
  const isInParts = source.mayUseParts === true && mostParts(plan) > 1;
  // While a loudness is tried, the best attempt is kept beside the next one and their PCM.
  const [kept, pcm] = plan.loudnessLufs === null ? [0, 0] : [1, pcmBytesOf(plan, source)];
  const files = isInParts ? FILES_IN_PARTS : plan.formatName === 'voice' ? FILES_OF_VOICE : 1;
  const recording = roomForRun(plan, { split: false, trimSilence: plan.trimSilence }, source);
  return Math.ceil((bytes + cover + TAGS_BYTES) * (files + kept) + pcm + recording);
}

/** Of the output as uncompressed audio, which levelling writes. */
export function pcmBytesOf(plan: OutputPlan, source: Source): number {
  const { channels, sampleRate } = plan.encode;
  return secondsOf(plan, source) * channels * sampleRate * LEVELLED_SAMPLE_BYTES;
}

/** Of tracks of the plans as uniform audio, in samples of 32 bits, up to `maxAudioSeconds`. */
export function uniformBytes(
  tracks: readonly AudioTrack[],
  plans: readonly OutputPlan[],
  {
    sizeBytes,
    durationSeconds,
    maxAudioSeconds,
  }: Pick<Probe, 'sizeBytes' | 'durationSeconds'> & Pick<Source, 'maxAudioSeconds'>,
): number {
  const ofTracks = tracks.map((track) => {
    const declared = track.declaredSeconds ?? durationSeconds ?? sizeBytes / FEWEST_BYTES_PER_SECOND;
    const seconds = Math.min(maxAudioSeconds, track.startSeconds + declared);
    return seconds * track.sampleRate * channelsTaken(plans, track) * UNIFORM_SAMPLE_BYTES;
  });
  return Math.ceil(ofTracks.reduce((sum, bytes) => sum + bytes, 0) * MARGIN);
}

const UNIFORM_SAMPLE_BYTES = 4;

/** Of an output without long pauses, or a run of voice notes: its recording, shortened as well. */
export function roomForRun(plan: OutputPlan, { split, trimSilence }: RunChoice, source: Source): number {
  return split || trimSilence ? pcmBytesOf(plan, source) * FILES_OF_RECORDING : 0;
}

const FILES_OF_RECORDING = 2;

function secondsOf({ expectedSeconds, trim }: OutputPlan, { sizeBytes, maxAudioSeconds }: Source): number {
  const requestedSeconds = (trim?.endSeconds ?? Number.POSITIVE_INFINITY) - (trim?.startSeconds ?? 0);
  return Math.min(maxAudioSeconds, requestedSeconds, expectedSeconds ?? sizeBytes / FEWEST_BYTES_PER_SECOND);
}

function encodedBytes(plan: OutputPlan, source: Source): number {
  return secondsOf(plan, source) * bytesPerSecond(plan);
}

/** A lossless codec is never larger than its PCM by more than the margin. */
function bytesPerSecond({ encode, samplesPerPixel }: OutputPlan): number {
  const { bitrateKbps, bitDepth, channels, sampleRate } = encode;
  if (samplesPerPixel !== null) return (sampleRate / samplesPerPixel) * PIXEL_BYTES;
  return bitrateKbps === null ? (channels * sampleRate * (bitDepth ?? 16)) / 8 : bitrateKbps * 125;
}

function copiedBytes(plan: OutputPlan, source: Source): number {
  if (plan.copy === null) return 0;
  const { bitrateKbps, channels, sampleRate } = plan.track;
  const unsaid =
    plan.format.quality === 'lossless' ? channels * sampleRate * WIDEST_SAMPLE_BYTES : LOSSY_BYTES_PER_SECOND;
  const perSecond = bitrateKbps === null ? unsaid : bitrateKbps * 125;
  return Math.min(source.sizeBytes, secondsOf(plan, source) * perSecond);
}
