/**
 * Decides what to make of a probed file, without touching it: which track, copied or encoded, with
 * which parameters (decisions A2 and A3).
 */
import {
  bitrateRangeOf,
  type Format,
  formatOf,
  nearestBitrate,
  type OutputFormatName,
  parseBitrate,
  takenBitrates,
} from 'soundpost-contract/formats';
import type {
  OutputRequest,
  TimelineChoice,
  TranscriptRequest,
  WaveformRequest,
} from 'soundpost-contract/output-request';
import { MediaFailure } from './failure.ts';
import type { AudioTrack, Probe } from './probe.ts';
import { CLOCK_TOLERANCE_SECONDS } from './timeline.ts';
import { chooseTrack } from './track-choice.ts';

/** The size up to which phones show a voice message as a bubble with a waveform. */
export const VOICE_BUBBLE_BYTES = 512 * 1024;

/** Containers are off by a few percent about a bitrate: within them it is measured. */
const NOMINAL_TOLERANCE = 1.05;

/** A voice message is never reduced below this to fit, kbit/s. */
export const VOICE_MIN_KBPS = 12;

/** Ogg's pages and lacing values at 17 packets a second, with a page each second. */
const OGG_OVERHEAD_KBPS = 0.4;

interface Trim {
  readonly startSeconds: number;
  /** null: to the end. */
  readonly endSeconds: number | null;
}

interface CopyPlan {
  /** The measured bitrate up to which the copy meets the request; null: any. */
  readonly maxKbps: number | null;
  /** The size up to which it does (a voice message that has to fit); null: any. */
  readonly maxBytes: number | null;
}

interface EncodePlan {
  /** ffmpeg's encoder. */
  readonly encoder: string;
  readonly channels: number;
  /** Of mono: the one channel of the track that it is, counted from 0; null: all of them, mixed. */
  readonly channel: number | null;
  readonly sampleRate: number;
  /** null for lossless formats. */
  readonly bitrateKbps: number | null;
  /** Bits of a sample, 16 or 24; null for lossy formats. */
  readonly bitDepth: 16 | 24 | null;
  /** If the file has to fit a voice bubble: its quality's bitrate, the most it gets; else null. */
  readonly bubbleKbps: number | null;
}

export interface OutputPlan {
  readonly formatName: OutputFormatName;
  readonly format: Format;
  readonly track: AudioTrack;
  /** Tried first if set: if the result exceeds its limits, the audio is encoded. */
  readonly copy: CopyPlan | null;
  readonly encode: EncodePlan;
  readonly trim: Trim | null;
  /** Integrated loudness to reach, LUFS; null: unchanged. */
  readonly loudnessLufs: number | null;
  readonly timeline: TimelineChoice;
  /** Whether pauses above 1 s become 0.5 s. */
  readonly trimSilence: boolean;
  /** Whether a truncated file is accepted. */
  readonly acceptTruncated: boolean;
  readonly preserveMetadata: boolean;
  /** Of a waveform: how many samples each of its pairs stands for; else null. */
  readonly samplesPerPixel: number | null;
  /** Expected length of the output by the container; null if unknown. */
  readonly expectedSeconds: number | null;
}

const DEFAULT_LOUDNESS_LUFS = -16;

/** @throws as {@link planOutput} does */
export function planAny(output: AnyRequest, probe: Probe): OutputPlan {
  switch (output.format) {
    case 'waveform':
      return planWaveform(output, probe);
    case 'transcript':
      return planTranscript(output, probe);
    default:
      return planOutput(output, probe);
  }
}

/** The transcriber's input: 16 kHz, mono, 16 bits, on the source's clock. */
function planTranscript({ track, start, end }: TranscriptRequest, probe: Probe): OutputPlan {
  const wav = planOutput(
    {
      ...{ format: 'wav', quality: 'low', channels: 1, sampleRate: 16_000, copy: 'never' },
      ...{ normalize: false, preserveMetadata: false, timeline: 'source', track, start, end },
    },
    probe,
  );
  return { ...wav, formatName: 'transcript' };
}

/** Takes hardly any time beside a decode: a long output with only these is cut as if alone. */
export function isLight({ formatName }: Pick<OutputPlan, 'formatName'>): boolean {
  return formatName === 'transcript';
}

/** The mean of the channels at the track's own rate, whose samples a waveform's pairs count. */
function planWaveform(wanted: WaveformRequest, probe: Probe): OutputPlan {
  const track = chooseTrack(probe, wanted.track);
  const trim = planTrim(wanted);
  return {
    formatName: wanted.format,
    format: formatOf(wanted.format),
    track,
    copy: null,
    encode: {
      encoder: 'pcm_s16le',
      channels: 1,
      channel: null,
      sampleRate: track.sampleRate,
      bitrateKbps: null,
      bitDepth: null,
      bubbleKbps: null,
    },
    trim,
    loudnessLufs: null,
    timeline: timelineOf(wanted),
    trimSilence: false,
    acceptTruncated: false,
    preserveMetadata: false,
    samplesPerPixel: Math.max(1, Math.round(track.sampleRate / wanted.pixelsPerSecond)),
    expectedSeconds: expectedDuration(trim, expectedEnd(wanted, track, probe)),
  };
}

/**
 * @throws {MediaFailure} EXTRACTION_FAILED when the file has no such track, or its channels or
 * sample rate rule out the requested bitrate.
 */
export function planOutput(output: OutputRequest, probe: Probe): OutputPlan {
  const format = formatOf(output.format);
  const track = chooseTrack(probe, output.track);
  const trim = planTrim(output);
  const channel = planChannel(output, track);
  const channels = channel === null ? planChannels(output, format, track) : 1;
  const sampleRate = output.sampleRate ?? nearestRate(format, track.sampleRate);
  const expectedSeconds = expectedDuration(trim, expectedEnd(output, track, probe));
  const fitsBubble = output.format === 'voice' && output.bitrate === undefined;
  const wantedKbps = planBitrate(output, format, channels, sampleRate);
  const bitrateKbps =
    fitsBubble && wantedKbps !== null && expectedSeconds !== null
      ? Math.min(wantedKbps, bubbleBitrate(expectedSeconds))
      : wantedKbps;
  return {
    formatName: output.format,
    format,
    track,
    copy: channel === null ? planCopy(output, format, track, channels, sampleRate) : null,
    encode: {
      encoder: encoderOf(output, format, track),
      channels,
      channel,
      sampleRate,
      bitrateKbps,
      bitDepth: format.quality === 'lossless' ? planBitDepth(output, track) : null,
      bubbleKbps: fitsBubble ? wantedKbps : null,
    },
    trim,
    loudnessLufs: output.normalize ? (output.loudness ?? DEFAULT_LOUDNESS_LUFS) : null,
    timeline: timelineOf(output),
    trimSilence: output.trimSilence ?? false,
    acceptTruncated: output.acceptTruncated ?? false,
    preserveMetadata: output.preserveMetadata,
    samplesPerPixel: null,
    expectedSeconds,
  };
}

/** The voice message of an output: the same track, the same part of it, the same loudness. */
export function planVoiceRendition(output: OutputRequest, probe: Probe): OutputPlan {
  const { track, channel, start, end, copy, normalize, loudness, acceptTruncated } = output;
  return planOutput(
    {
      format: 'voice',
      preserveMetadata: false,
      track,
      channel,
      start,
      end,
      copy,
      normalize,
      loudness,
      acceptTruncated,
    },
    probe,
  );
}

/** A recording to shorten or cut into notes before it is encoded (packages/media/src/notes). */
export function planRecording(plan: OutputPlan): OutputPlan {
  const { bitDepth } = plan.encode;
  const encoder = bitDepth === 24 ? 'pcm_s24le' : 'pcm_s16le';
  const encode = { ...plan.encode, encoder, bitrateKbps: null, bitDepth: bitDepth ?? 16, bubbleKbps: null };
  const wav = { formatName: 'wav', format: formatOf('wav'), copy: null, encode } as const;
  return { ...plan, ...wav, trimSilence: false, preserveMetadata: false };
}

type AnyRequest = OutputRequest | WaveformRequest | TranscriptRequest;

function timelineOf({ timeline, format }: OutputRequest | WaveformRequest): TimelineChoice {
  return timeline ?? (format === 'voice' ? 'audio' : 'source');
}

/** The track's end by the container: on the source's clock, or its own if its start is dropped. */
function expectedEnd(
  output: OutputRequest | WaveformRequest,
  track: AudioTrack,
  probe: Probe,
): number | null {
  if (track.declaredSeconds === null) return probe.durationSeconds;
  return track.declaredSeconds + (timelineOf(output) === 'source' ? track.startSeconds : 0);
}

function planTrim({ start, end }: OutputRequest | WaveformRequest): Trim | null {
  return start === undefined && end === undefined
    ? null
    : { startSeconds: start ?? 0, endSeconds: end ?? null };
}

function expectedDuration(trim: Trim | null, wholeSeconds: number | null): number | null {
  if (wholeSeconds === null) return null;
  const end = Math.min(wholeSeconds, trim?.endSeconds ?? wholeSeconds);
  return Math.max(0, end - (trim?.startSeconds ?? 0));
}

/** The index of the channel that is taken alone; null: all are. */
function planChannel({ channel }: OutputRequest, track: AudioTrack): number | null {
  if (channel === undefined) return null;
  const index = channel === 'left' ? 0 : channel === 'right' ? 1 : channel;
  if (index < track.channels) return index;
  const known = track.channels === 1 ? 'channel 0 alone' : `channels 0 to ${track.channels - 1}`;
  const labels = track.layout === null ? '' : ` (${track.layout})`;
  throw new MediaFailure(
    'EXTRACTION_FAILED',
    `no channel ${channel}; audio track ${track.index} has ${known}${labels}`,
  );
}

/** RFC 9639 section 9.1.3. */
const FLAC_MAX_CHANNELS = 8;

function planChannels(output: OutputRequest, format: Format, track: AudioTrack): number {
  const channels = output.channels ?? Math.min(track.channels, format.maxChannels ?? track.channels);
  if (format.codec === 'flac' && channels > FLAC_MAX_CHANNELS) {
    throw new MediaFailure(
      'EXTRACTION_FAILED',
      `flac supports at most ${FLAC_MAX_CHANNELS} channels, but the track has ${channels}; set channels to 1 or 2`,
    );
  }
  return channels;
}

function nearestRate(format: Format, sourceRate: number): number {
  return (format.sampleRates ?? [sourceRate]).reduce((best, rate) =>
    Math.abs(rate - sourceRate) <= Math.abs(best - sourceRate) ? rate : best,
  );
}

function planBitrate(
  output: OutputRequest,
  format: Format,
  channels: number,
  sampleRate: number,
): number | null {
  const taken = takenBitrates(format.codec, channels, sampleRate);
  if (taken === null || format.quality === 'lossless') return null;
  if (output.bitrate !== undefined) {
    const kbps = parseBitrate(output.bitrate);
    const { min, max } = bitrateRangeOf(taken);
    if (kbps < min || kbps > max) {
      const channelWord = channels === 1 ? '1 channel' : `${channels} channels`;
      throw new MediaFailure(
        'EXTRACTION_FAILED',
        `${output.format} with ${channelWord} at ${sampleRate} Hz supports ${min}k to ${max}k, not ${output.bitrate}`,
      );
    }
    return nearestBitrate(taken, kbps);
  }
  return nearestBitrate(taken, format.quality[output.quality ?? 'high']);
}

/** The highest bitrate at which so many seconds fit a voice bubble, never below 12k. */
export function bubbleBitrate(seconds: number): number {
  const kbps = (VOICE_BUBBLE_BYTES * 8) / 1000 / Math.max(1, seconds) - OGG_OVERHEAD_KBPS;
  return Math.max(VOICE_MIN_KBPS, Math.floor(kbps));
}

/** 16 bits for low and medium; otherwise the source's, at most 24; a lossy source counts as 16. */
function planBitDepth({ quality = 'high' }: OutputRequest, track: AudioTrack): 16 | 24 {
  if (quality === 'low' || quality === 'medium') return 16;
  return track.isFloat || (track.bitDepth ?? 16) > 16 ? 24 : 16;
}

function encoderOf(output: OutputRequest, format: Format, track: AudioTrack): string {
  switch (format.codec) {
    case 'mp3':
      return 'libmp3lame';
    case 'vorbis':
      return 'libvorbis';
    case 'opus':
      return 'libopus';
    case 'pcm':
      return planBitDepth(output, track) === 24 ? 'pcm_s24le' : 'pcm_s16le';
    default:
      return format.codec;
  }
}

/** Sample formats of WAV that everybody reads; big-endian ones of MOV and AIFF are encoded. */
const WAV_CODECS = new Set(['pcm_u8', 'pcm_s16le', 'pcm_s24le', 'pcm_s32le', 'pcm_f32le', 'pcm_f64le']);

/** ADTS has two bits for the profile (ISO/IEC 13818-7): ELD and xHE-AAC do not fit. */
const AAC_PROFILES = new Set(['LC', 'HE-AAC', 'HE-AACv2']);

function isCodecOf(format: Format, { codec, profile }: AudioTrack): boolean {
  if (format.codec === 'pcm') return WAV_CODECS.has(codec);
  if (format.codec === 'aac') return codec === 'aac' && profile !== null && AAC_PROFILES.has(profile);
  return codec === format.codec;
}

function planCopy(
  output: OutputRequest,
  format: Format,
  track: AudioTrack,
  channels: number,
  sampleRate: number,
): CopyPlan | null {
  // A cut inside a packet needs a decode; between packets it is up to 64 ms off.
  const needsDecode =
    output.copy === 'never' ||
    output.normalize ||
    output.trimSilence === true ||
    output.start !== undefined ||
    output.end !== undefined ||
    (timelineOf(output) === 'source' && track.startSeconds > CLOCK_TOLERANCE_SECONDS) ||
    channels !== track.channels ||
    // Opus has no rate of its own (RFC 7845 section 5.1).
    (format.codec !== 'opus' && sampleRate !== track.sampleRate);
  if (needsDecode || !isCodecOf(format, track)) return null;
  if (format.quality === 'lossless')
    return isDepthWithin(output, track) ? { maxKbps: null, maxBytes: null } : null;
  const requestedKbps =
    output.bitrate !== undefined
      ? parseBitrate(output.bitrate)
      : output.quality !== undefined
        ? format.quality[output.quality]
        : null;
  // The container's bitrate may be nominal; the copy's is measured.
  if (requestedKbps !== null && (track.bitrateKbps ?? 0) > requestedKbps * NOMINAL_TOLERANCE) return null;
  const mustFit = output.format === 'voice' && output.bitrate === undefined;
  return { maxKbps: requestedKbps, maxBytes: mustFit ? VOICE_BUBBLE_BYTES : null };
}

/** Lossless formats compare the depth, not the bitrate: more than requested is encoded. */
function isDepthWithin(output: OutputRequest, track: AudioTrack): boolean {
  if (output.quality === undefined) return true;
  if (track.isFloat) return false;
  const depth = track.bitDepth ?? 16;
  return output.quality === 'low' || output.quality === 'medium' ? depth <= 16 : depth <= 24;
}

/** How a voice message is cut and shortened. */
export interface RunChoice {
  /** Cut into notes that fit a bubble each. */
  readonly split: boolean;
  /** Pauses above 1 s become 0.5 s. */
  readonly trimSilence: boolean;
}
