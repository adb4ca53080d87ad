/**
 * The output formats: names, file contents and qualities (decisions A2 and A3), and the bitrates
 * that an encoder accepts for given channels and sample rate.
 */
import { z } from 'zod';

export const qualities = ['low', 'medium', 'high', 'extreme'] as const;
type Quality = (typeof qualities)[number];

/** What the seconds of an output are: the source's, or its own where gaps are closed. */
export const timelines = ['source', 'audio'] as const;

/** Codec names are ffmpeg's, so that a probed track compares with a row directly. */
type AudioCodec = 'mp3' | 'aac' | 'flac' | 'pcm' | 'vorbis' | 'opus';

export interface Format {
  readonly codec: AudioCodec;
  /** ffmpeg's muxer. */
  readonly muxer: 'mp3' | 'adts' | 'ipod' | 'flac' | 'wav' | 'ogg' | 's16le';
  readonly extension: string;
  readonly mediaType: string;
  /** kbit/s of each quality, or 'lossless': then a quality chooses the bit depth (decisions A3). */
  readonly quality: Readonly<Record<Quality, number>> | 'lossless';
  /** kbit/s that an explicit output.bitrate may name; null: the codec has no bitrate to choose. */
  readonly bitrateRange: { readonly min: number; readonly max: number } | null;
  /** Sample rates that the format takes, Hz; null: any of 8000 … 192000. */
  readonly sampleRates: readonly number[] | null;
  /** The most channels unless output.channels says less; null: as many as the source. */
  readonly maxChannels: number | null;
  /** What the container can keep of the source besides the audio. */
  readonly keeps: { readonly tags: boolean; readonly chapters: boolean; readonly cover: boolean };
}

const MPEG_LAYER_3_RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000] as const;
const AAC_RATES = [...MPEG_LAYER_3_RATES, 64000, 88200, 96000] as const;
const COMMON_QUALITY = { low: 96, medium: 128, high: 192, extreme: 320 } as const;

const M4A = {
  codec: 'aac',
  muxer: 'ipod',
  extension: 'm4a',
  mediaType: 'audio/mp4',
  quality: COMMON_QUALITY,
  bitrateRange: { min: 32, max: 512 },
  sampleRates: AAC_RATES,
  maxChannels: 2,
  keeps: { tags: true, chapters: true, cover: true },
} as const;

export const formats = {
  mp3: {
    codec: 'mp3',
    muxer: 'mp3',
    extension: 'mp3',
    mediaType: 'audio/mpeg',
    quality: COMMON_QUALITY,
    bitrateRange: { min: 32, max: 320 },
    sampleRates: MPEG_LAYER_3_RATES,
    maxChannels: 2,
    keeps: { tags: true, chapters: true, cover: true },
  },
  aac: {
    codec: 'aac',
    muxer: 'adts',
    extension: 'aac',
    mediaType: 'audio/aac',
    quality: COMMON_QUALITY,
    bitrateRange: { min: 32, max: 512 },
    sampleRates: AAC_RATES,
    maxChannels: 2,
    keeps: { tags: false, chapters: false, cover: false },
  },
  m4a: M4A,
  m4b: { ...M4A, extension: 'm4b' },
  flac: {
    codec: 'flac',
    muxer: 'flac',
    extension: 'flac',
    mediaType: 'audio/flac',
    quality: 'lossless',
    bitrateRange: null,
    sampleRates: null,
    maxChannels: null,
    keeps: { tags: true, chapters: true, cover: true },
  },
  wav: {
    codec: 'pcm',
    muxer: 'wav',
    extension: 'wav',
    mediaType: 'audio/wav',
    quality: 'lossless',
    bitrateRange: null,
    sampleRates: null,
    maxChannels: null,
    keeps: { tags: true, chapters: false, cover: false },
  },
  ogg: {
    codec: 'vorbis',
    muxer: 'ogg',
    extension: 'ogg',
    mediaType: 'audio/ogg',
    quality: COMMON_QUALITY,
    bitrateRange: { min: 32, max: 320 },
    // libvorbis has no bitrates above 50 kHz, only its own qualities.
    sampleRates: MPEG_LAYER_3_RATES,
    maxChannels: 2,
    keeps: { tags: true, chapters: true, cover: true },
  },
  opus: {
    codec: 'opus',
    muxer: 'ogg',
    extension: 'opus',
    mediaType: 'audio/ogg',
    quality: { low: 48, medium: 80, high: 128, extreme: 192 },
    bitrateRange: { min: 6, max: 510 },
    sampleRates: [48000],
    maxChannels: 2,
    keeps: { tags: true, chapters: true, cover: true },
  },
  voice: {
    codec: 'opus',
    muxer: 'ogg',
    extension: 'ogg',
    mediaType: 'audio/ogg; codecs=opus',
    quality: { low: 12, medium: 16, high: 24, extreme: 32 },
    // Within it libopus keeps to the mode that all phones play (packages/media/src/ogg).
    bitrateRange: { min: 10, max: 40 },
    sampleRates: [16000],
    maxChannels: 1,
    keeps: { tags: false, chapters: false, cover: false },
  },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof formats;

export const FormatName = z.enum(Object.keys(formats) as [FormatName, ...FormatName[]]);

/** What a job makes besides audio (decisions A8): what ffmpeg outputs for it, and the file. */
const derivedFormats = {
  /** Pairs of lowest and highest sample, made of PCM that comes through a pipe. */
  waveform: {
    codec: 'pcm',
    muxer: 's16le',
    extension: 'json',
    mediaType: 'application/json',
    quality: 'lossless',
    bitrateRange: null,
    sampleRates: null,
    maxChannels: 1,
    keeps: { tags: false, chapters: false, cover: false },
  },
  /** WAV for the transcriber; the extension and type are WebVTT's, others are in transcripts.ts. */
  transcript: {
    codec: 'pcm',
    muxer: 'wav',
    extension: 'vtt',
    mediaType: 'text/vtt; charset=utf-8',
    quality: 'lossless',
    bitrateRange: null,
    sampleRates: [16000],
    maxChannels: 1,
    keeps: { tags: false, chapters: false, cover: false },
  },
} as const satisfies Record<string, Format>;

/** Everything that an output may be. */
export const outputFormats = { ...formats, ...derivedFormats };
export type OutputFormatName = keyof typeof outputFormats;

export function isAudioFormat(name: unknown): name is FormatName {
  return typeof name === 'string' && Object.hasOwn(formats, name);
}

/** The row of a format with its literal types widened, for code that treats all formats alike. */
export function formatOf(name: OutputFormatName): Format {
  return outputFormats[name];
}

/** `"192k"` → 192. The pattern is the contract's (audio-extraction.md, outputFile.bitrate). */
export function parseBitrate(bitrate: string): number {
  return Number.parseInt(bitrate, 10);
}

// Which bitrates the encoders accept, by channels and sample rate. Measured with ffmpeg 5.1
// (libmp3lame 3.100, libvorbis 1.3.7, libopus 1.3.1, ffmpeg's own AAC encoder);
// packages/media/test/encoder-limits.core-all.test.ts measures them again.

/** Bitrates in kbit/s: any whole number of a range, or only those of a list (ascending). */
type TakenBitrates = { readonly min: number; readonly max: number } | { readonly only: readonly number[] };

/** ISO/IEC 11172-3 layer III bitrate table, from the 32k on that the service offers. */
const MPEG_1 = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320] as const;
/** ISO/IEC 13818-3 low sampling frequencies. */
const MPEG_2 = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160] as const;
/** The MPEG-2.5 extension; LAME goes no higher there. */
const MPEG_2_5 = [8, 16, 24, 32, 40, 48, 56, 64] as const;

interface VorbisRow {
  /** The row holds from this sample rate on, Hz. */
  readonly fromHz: number;
  /** kbit/s in all for one channel, and for two. */
  readonly mono: readonly [min: number, max: number];
  readonly stereo: readonly [min: number, max: number];
}

/** libvorbis has one set of modes per range of sample rates; other bitrates fail at the start. */
const VORBIS: readonly VorbisRow[] = [
  { fromHz: 40_000, mono: [32, 240], stereo: [45, 500] },
  { fromHz: 26_000, mono: [30, 190], stereo: [36, 380] },
  { fromHz: 19_000, mono: [16, 90], stereo: [30, 180] },
  { fromHz: 15_000, mono: [16, 100], stereo: [24, 200] },
  { fromHz: 9_000, mono: [12, 50], stereo: [16, 100] },
  { fromHz: 0, mono: [8, 42], stereo: [12, 84] },
];

/** @param channels 1 or 2: the codecs that have a bitrate are never given more. */
export function takenBitrates(codec: AudioCodec, channels: number, sampleRate: number): TakenBitrates | null {
  switch (codec) {
    case 'mp3':
      return { only: sampleRate >= 32_000 ? MPEG_1 : sampleRate >= 16_000 ? MPEG_2 : MPEG_2_5 };
    case 'aac':
      // ISO/IEC 14496-3: at most 6144 bits a channel in 1024 samples; the encoder clamps more.
      return { min: 8, max: Math.floor((6144 * channels * sampleRate) / 1024 / 1000) };
    case 'vorbis': {
      const row = VORBIS.find(({ fromHz }) => sampleRate >= fromHz);
      const [min, max] = (channels === 1 ? row?.mono : row?.stereo) ?? [32, 240];
      return { min, max };
    }
    case 'opus':
      // libopus: 256 kbit/s a channel; RFC 6716 section 2.1.1 ends at 510.
      return { min: 6, max: channels === 1 ? 256 : 510 };
    case 'flac':
    case 'pcm':
      return null;
  }
}

/** The accepted bitrate nearest to the wanted one, the higher of two equally near ones. */
export function nearestBitrate(taken: TakenBitrates, wantedKbps: number): number {
  if (!('only' in taken)) return Math.min(taken.max, Math.max(taken.min, wantedKbps));
  return taken.only.reduce((best, kbps) =>
    Math.abs(kbps - wantedKbps) <= Math.abs(best - wantedKbps) ? kbps : best,
  );
}

export function bitrateRangeOf(taken: TakenBitrates): { readonly min: number; readonly max: number } {
  if (!('only' in taken)) return taken;
  return { min: Math.min(...taken.only), max: Math.max(...taken.only) };
}
